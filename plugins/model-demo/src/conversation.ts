import { type Message, textOf } from '@plugboard/kernel';

/** What a tool said to a call of this turn. */
export interface ToolResult {
  readonly tool: string;
  readonly text: string;
}

/** What the user said last, or nothing. */
export function lastPrompt(messages: readonly Message[]): string {
  return prompts(messages).at(-1) ?? '';
}

/** What the user said, oldest first. */
export function prompts(messages: readonly Message[]): readonly string[] {
  return messages.filter((message) => message.role === 'user').map((message) => textOf(message.content));
}

/** What tools have said since the user spoke last. */
export function toolResults(messages: readonly Message[]): readonly ToolResult[] {
  const turn = messages.slice(messages.findLastIndex((message) => message.role === 'user') + 1);
  const names = new Map<string, string>();
  const results: ToolResult[] = [];
  for (const message of turn) {
    if (message.role === 'assistant') {
      for (const call of message.tool_calls ?? [])
        names.set(call.id, call.type === 'function' ? call.function.name : call.custom.name);
    } else if (message.role === 'tool') {
      results.push({ tool: names.get(message.tool_call_id) ?? message.tool_call_id, text: textOf(message.content) });
    } else if (message.role === 'function') {
      results.push({ tool: message.name, text: textOf(message.content) });
    }
  }
  return results;
}
