import type { Message } from '@plugboard/kernel';
import { invalidRequest, truncate } from '@plugboard/openai-protocol';
import type { InputMessages } from '../items/input-messages.js';

/**
 * A conversation that the caller continues without a session. The result is valid for every
 * provider: each result answers a call before it, and each call of the history has a result.
 *
 * @throws ProtocolError 400 for a result that answers no call.
 */
export function joinHistory(history: readonly Message[], { messages, origins }: InputMessages): readonly Message[] {
  const open = openCalls(history);
  const leading = leadingResults(messages);
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'tool') continue;
    if (index < leading && open.delete(message.tool_call_id)) continue;
    if (!callsBefore(messages, index).has(message.tool_call_id)) throw noCall(message.tool_call_id, origins[index] ?? index);
  }
  if (leading > 0 && open.size > 0) {
    throw invalidRequest(`The outputs of these function calls are missing: ${[...open].join(', ')}.`, { param: 'input' });
  }
  const closing = [...open].map(
    (id): Message => ({ role: 'tool', tool_call_id: id, content: 'Error: the caller returned no result for this call.' }),
  );
  return [...history, ...closing, ...messages];
}

/** The ids of the last step's calls that have no result yet. */
function openCalls(messages: readonly Message[]): Set<string> {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const asking = messages[last];
  const open = new Set(asking?.role === 'assistant' ? (asking.tool_calls ?? []).map(({ id }) => id) : []);
  for (const message of messages.slice(last + 1)) if (message.role === 'tool') open.delete(message.tool_call_id);
  return open;
}

function leadingResults(messages: readonly Message[]): number {
  const other = messages.findIndex(({ role }) => role !== 'tool' && role !== 'system');
  return other < 0 ? messages.length : other;
}

/** The ids of the calls that the results in front of `index` may answer. */
function callsBefore(messages: readonly Message[], index: number): ReadonlySet<string> {
  const asking = messages.slice(0, index).findLast(({ role }) => role !== 'tool');
  return new Set(asking?.role === 'assistant' ? (asking.tool_calls ?? []).map(({ id }) => id) : []);
}

function noCall(id: string, item: number) {
  return invalidRequest(`No function call with the call_id '${truncate(id)}' waits for an output.`, {
    param: `input[${item}].call_id`,
  });
}
