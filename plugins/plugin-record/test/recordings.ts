import type { Message } from '@plugboard/kernel';
import type { Attempt, Recording, ToolLine, TurnLine } from '../src/format/recording.js';
import { linesOf } from '../src/format/write-recording.js';

export const CLOCK = { name: 'clock', description: 'Tells the time.', inputSchema: { type: 'object' } };

export const QUESTION: Message = { role: 'user', content: 'What time is it?' };
const PROMPT: Message = { role: 'system', content: 'You are terse.' };
const CALLED: Message = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_one', type: 'function', function: { name: 'clock', arguments: '{}' } }],
};
const RESULT: Message = { role: 'tool', tool_call_id: 'call_one', content: 'noon' };

export function turnLine(changes: Partial<TurnLine> = {}): TurnLine {
  return {
    type: 'turn',
    version: 1,
    id: 'turn_one',
    requestId: 'req_one',
    at: Date.UTC(2026, 10, 28, 3, 47),
    agent: 'assistant',
    inSession: false,
    caller: { project: 'default', isIdentified: true },
    metadata: {},
    incremental: false,
    prompt: 'You are terse.',
    messages: [QUESTION],
    params: { temperature: 0.2 },
    request: { params: {}, clientTools: [], system: [] },
    connections: ['fast'],
    ...changes,
  };
}

export function attempt(changes: Partial<Attempt> = {}): Attempt {
  return {
    step: 1,
    attempt: 1,
    connection: 'fast',
    model: 'big-1',
    messages: [PROMPT, QUESTION],
    tools: [CLOCK],
    params: { temperature: 0.2 },
    events: [
      { type: 'text', text: 'Noon.' },
      { type: 'end', reason: 'stop' },
    ],
    milliseconds: 5,
    ...changes,
  };
}

export function toolLine(changes: Partial<ToolLine> = {}): ToolLine {
  return {
    type: 'tool',
    step: 1,
    id: 'call_one',
    name: 'clock',
    arguments: '{}',
    state: 'ran',
    input: {},
    output: 'noon',
    ...changes,
  };
}

/** A turn that asks a tool, and then answers. */
export function recording(changes: Partial<Recording> = {}): Recording {
  const first = attempt({
    events: [
      { type: 'tool-call', id: 'call_0', name: 'clock', arguments: '{}' },
      { type: 'end', reason: 'tool_calls' },
    ],
  });
  return {
    turn: turnLine(),
    attempts: [first, attempt({ step: 2, tools: first.tools, messages: [...first.messages, CALLED, RESULT] })],
    tools: [toolLine()],
    end: { type: 'end', status: 'stop', answer: 'Noon.', milliseconds: 12 },
    ...changes,
  };
}

export function textOf(one: Recording): string {
  return [...linesOf(one)].join('');
}
