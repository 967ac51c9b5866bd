import type { ToolCall } from '@plugboard/kernel';
import { OPEN } from '@plugboard/kernel/contracts';

/** The context of a tool call, with the progress that the tool reported. @experimental */
export interface TestToolCall extends ToolCall {
  readonly progressed: readonly { readonly message: string; readonly fraction: number | undefined }[];
}

/** The second argument of a tool's `run`, by default on an open server. @experimental */
export function testToolCall(overrides: Partial<Omit<ToolCall, 'progress'>> = {}): TestToolCall {
  const progressed: { message: string; fraction: number | undefined }[] = [];
  return {
    id: 'call_1',
    turnId: 'turn_1',
    index: 0,
    agent: 'assistant',
    principal: OPEN,
    session: undefined,
    requestId: 'req_1',
    metadata: {},
    signal: new AbortController().signal,
    headers: {},
    ...overrides,
    progress: (message, fraction) => void progressed.push({ message, fraction }),
    progressed,
  };
}
