import type { Message } from './message.js';

/** Returns the calls of the last assistant message that have no result yet. @experimental */
export function openToolCalls(messages: readonly Message[]): readonly string[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const asking = messages[last];
  if (asking?.role !== 'assistant' || !asking.tool_calls) return [];
  const answered = new Set(
    messages.slice(last + 1).flatMap((message) => (message.role === 'tool' ? [message.tool_call_id] : [])),
  );
  return asking.tool_calls.map(({ id }) => id).filter((id) => !answered.has(id));
}
