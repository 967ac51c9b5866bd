import { OPEN } from '../contracts/principal.js';
import type { ToolCall } from '../contracts/tool-source.js';

/** A tool call's dependencies, and what the tool told of its progress. */
export interface TestToolCall extends ToolCall {
  readonly progressed: readonly { readonly message: string; readonly fraction: number | undefined }[];
}

/** What a tool's `run` is given as its second argument: a call of a turn in the open scope, unless told otherwise. */
export function testToolCall(overrides: Partial<Omit<ToolCall, 'progress'>> = {}): TestToolCall {
  const progressed: { message: string; fraction: number | undefined }[] = [];
  return {
    id: 'call_1',
    turnId: 'turn_1',
    index: 0,
    agent: 'assistant',
    principal: OPEN,
    signal: new AbortController().signal,
    headers: {},
    ...overrides,
    progress: (message, fraction) => void progressed.push({ message, fraction }),
    progressed,
  };
}
