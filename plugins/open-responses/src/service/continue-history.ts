import type { Message } from '@plugboard/kernel';
import { openToolCalls, type ToolMessage } from '@plugboard/kernel/contracts';
import type { InputMessages } from '../items/input-messages.js';

/**
 * The new messages of a conversation that the caller continues without a session. Calls that the
 * caller leaves open get an error result, so that every provider accepts the conversation.
 */
export function continueHistory(history: readonly Message[], input: InputMessages): InputMessages {
  if (input.messages[0]?.role === 'tool') return input;
  const closing = openToolCalls(history).map(
    (id): ToolMessage => ({ role: 'tool', tool_call_id: id, content: 'Error: the caller returned no result for this call.' }),
  );
  return { messages: [...closing, ...input.messages], origins: [...closing.map(() => 0), ...input.origins] };
}
