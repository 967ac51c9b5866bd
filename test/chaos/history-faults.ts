import type { Message } from '@plugboard/kernel';

/**
 * What keeps a conversation from being one that every provider takes, each as a sentence: a call
 * without its result, a result without its call, roles that do not take turns, an end in the middle
 * of a turn.
 */
export function historyFaults(messages: readonly Message[]): readonly string[] {
  const faults: string[] = [];
  const open = new Set<string>();
  let before: Message | undefined;
  for (const [index, message] of messages.entries()) {
    const fault = (what: string) => faults.push(`message ${index} (${message.role}) ${what}`);
    if (message.role === 'system') {
      fault('is kept, and should not be');
      continue;
    }
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) fault(`answers the call ${message.tool_call_id}, which is not open`);
    } else {
      if (open.size > 0) fault(`follows upon calls without results: ${[...open].join(', ')}`);
      open.clear();
      if (message.role === 'user' && before !== undefined && !isAnswer(before)) fault(`follows upon ${before.role}`);
      if (message.role === 'assistant' && (before === undefined || isAnswer(before))) fault('answers no user message');
      if (message.role === 'assistant') for (const { id } of message.tool_calls ?? []) open.add(id);
    }
    before = message;
  }
  if (before !== undefined && !isAnswer(before)) faults.push(`the last message is ${before.role}, and no answer`);
  return faults;
}

function isAnswer(message: Message): boolean {
  return message.role === 'assistant' && (message.tool_calls?.length ?? 0) === 0;
}
