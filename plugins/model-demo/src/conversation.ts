import type { Message } from '@plugboard/kernel';
import { textOf } from '@plugboard/kernel/contracts';

/** The result of a tool call of this turn. */
export interface ToolResult {
  readonly tool: string;
  readonly text: string;
}

/** The text of the last user message, or an empty string. */
export function lastPrompt(messages: readonly Message[]): string {
  return prompts(messages).at(-1) ?? '';
}

/** The texts of all user messages, oldest first. */
export function prompts(messages: readonly Message[]): readonly string[] {
  return messages.filter((message) => message.role === 'user').map((message) => textOf(message.content));
}

/** The results of all tool calls since the last user message. */
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
