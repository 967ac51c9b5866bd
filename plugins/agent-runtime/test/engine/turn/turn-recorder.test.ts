import type { AgentEvent } from '@plugboard/kernel';
import type { TurnRecord } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { TurnRecorder } from '../../../src/engine/turn/turn-recorder.js';
import { interruptedRecord, parseRecord } from '../../../src/sessions/turn-record.js';

const START = Date.UTC(2026, 0, 1);
const USAGE = { promptTokens: 5, completionTokens: 7, cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 2 };
const TOOL = { entry: 'files', name: 'read' };

const call = (id: string, more: object = {}): AgentEvent => ({
  type: 'tool-call',
  id,
  name: 'files__read',
  arguments: '{"path":"a"}',
  tool: TOOL,
  ...more,
});
const result = (id: string, milliseconds: number, isError = false): AgentEvent => ({
  type: 'tool-result',
  id,
  content: 'x',
  images: [],
  isError,
  milliseconds,
});
const finished = (more: object = {}): AgentEvent => ({ type: 'finished', reason: 'stop', usage: USAGE, ...more });

/** Records a turn of batches that come at these times, in milliseconds since its arrival. */
function record(
  batches: readonly (readonly [at: number, ...events: AgentEvent[]])[],
  { queued = 0, keepsReasoning = true, decisions = [] as NonNullable<TurnRecord['decisions']> } = {},
): TurnRecord | undefined {
  const clock = new ManualClock();
  const arrivedAt = clock.monotonic();
  clock.advance(queued);
  const recorder = new TurnRecorder(arrivedAt, clock, keepsReasoning);
  for (const [at, ...events] of batches) {
    clock.advance(at - clock.monotonic());
    recorder.add(events);
  }
  recorder.decide(decisions);
  return parseRecord(recorder.text);
}

t.test('a turn is recorded with its steps, calls, times and tokens', async (t) => {
  const turn = record(
    [
      [12, { type: 'started', turnId: 'turn_1', agent: 'a' }],
      [100, { type: 'step', step: 1, connection: 'fast' }],
      [150, { type: 'reasoning', text: 'Let me ' }, { type: 'reasoning', text: 'see.' }],
      [300, { type: 'text', text: 'Wait' }, { type: 'usage', usage: USAGE }, call('a'), call('b')],
      [420, result('b', 115, true)],
      [800, result('a', 500)],
      [900, { type: 'step', step: 2, connection: 'spare' }, { type: 'text', text: 'Done' }],
      [1_000, finished({ reason: 'length', limit: 'max_steps' })],
    ],
    { queued: 10 },
  );
  t.strictSame(turn, {
    startedAt: START,
    queued: 10,
    duration: 1_000,
    usage: USAGE,
    reason: 'length',
    limit: 'max_steps',
    steps: [
      { connection: 'fast', start: 12, duration: 288, usage: USAGE, firstToken: 150, reasoning: 'Let me see.', reasoned: 150 },
      { connection: 'spare', start: 800, duration: 200, firstToken: 900 },
    ],
    calls: [
      { id: 'a', name: 'files__read', tool: TOOL, step: 1, start: 300, state: 'completed', duration: 500 },
      { id: 'b', name: 'files__read', tool: TOOL, step: 1, start: 300, state: 'failed', duration: 115 },
    ],
  });
});

t.test('the first token of a step without text is its call', async (t) => {
  const turn = record([
    [0, { type: 'started', turnId: 'turn_1', agent: 'a' }, { type: 'step', step: 1, connection: 'fast' }],
    [40, call('a', { tool: undefined })],
    [50, finished({ reason: 'tool_calls' })],
  ]);
  t.match(turn, { steps: [{ firstToken: 40, duration: 40 }], calls: [{ state: 'client', start: 40 }] });
  t.equal(turn?.calls[0]?.duration, undefined);
});

t.test('calls that wait for approval, were approved, or have no result say so', async (t) => {
  const asked = call('a') as Extract<AgentEvent, { type: 'tool-call' }>;
  const inner = { entry: 'helper › shell', name: 'append' };
  const turn = record([
    [0, { type: 'started', turnId: 'turn_1', agent: 'a' }],
    [1, call('old', { approval: 'mcpr_old' }), result('old', 3)],
    [10, { type: 'step', step: 1, connection: 'fast' }],
    [20, { type: 'approval', id: 'mcpr_a', code: 'K7M2QX', call: asked }, call('b'), call('c')],
    [30, { type: 'approval', id: 'mcpr_b', code: 'K7M2QY', call: { ...asked, id: 'b', arguments: '{"line":"x"}', tool: inner } }],
    [40, finished()],
  ]);
  t.match(turn?.calls, [
    { id: 'old', step: 0, state: 'completed', approval: 'mcpr_old', arguments: '{"path":"a"}' },
    { id: 'a', step: 1, state: 'waiting', approval: 'mcpr_a' },
    { id: 'b', step: 1, state: 'waiting', approval: 'mcpr_b', tool: inner, arguments: '{"line":"x"}' },
    { id: 'c', step: 1, state: 'cut' },
  ]);
  t.equal(turn?.calls[1]?.arguments, undefined, 'the messages of the turn have them');
});

t.test('a record is bounded: long reasoning is cut with a note, and the entries are limited', async (t) => {
  const long = 'ü'.repeat(20_000);
  const turn = record([
    [0, { type: 'step', step: 1, connection: 'fast' }, { type: 'reasoning', text: long }, { type: 'reasoning', text: long }],
    [1, { type: 'step', step: 2, connection: 'fast' }, { type: 'reasoning', text: 'more' }],
    ...Array.from({ length: 1_200 }, (_, n) => [2, call(`${n}`), { type: 'step', step: n, connection: 'x' }] as const),
    [3, finished()],
  ] as never);
  t.equal(turn?.steps[0]?.reasoning, `${long}${'ü'.repeat(32_768 - 20_000)}\n… [7232 characters left out]`);
  t.equal(turn?.steps[1]?.reasoning, '\n… [4 characters left out]');
  t.equal(turn?.steps.length, 1_000);
  t.equal(turn?.calls.length, 1_000);
});

t.test('reasoning that callers may not see is not kept', async (t) => {
  const turn = record([[0, { type: 'step', step: 1, connection: 'fast' }, { type: 'reasoning', text: 'secret' }, finished()]], {
    keepsReasoning: false,
  });
  t.notMatch(JSON.stringify(turn), 'secret');
  t.equal(turn?.steps[0]?.firstToken, 0);
});

t.test('decisions are kept with the turn that they took effect in', async (t) => {
  const decisions = [{ approval: 'mcpr_a', call: 'a', approve: false, by: 'expired' }] as const;
  t.strictSame(record([[0, finished()]], { decisions })?.decisions, decisions);
});

t.test('a turn that runs has a record of what happened so far', async (t) => {
  const clock = new ManualClock();
  const recorder = new TurnRecorder(clock.monotonic(), clock, true);
  recorder.add([
    { type: 'started', turnId: 'turn_1', agent: 'a' },
    { type: 'step', step: 1, connection: 'fast' },
  ]);
  clock.advance(20);
  t.match(recorder.record, {
    duration: 20,
    reason: undefined,
    steps: [{ start: 0, duration: undefined, firstToken: undefined }],
  });
  recorder.add([{ type: 'text', text: 'Wait' }, call('a')]);
  clock.advance(10);
  t.match(recorder.record, {
    duration: 30,
    steps: [{ firstToken: 20, duration: 20 }],
    calls: [{ start: 20, state: 'cut', duration: undefined }],
  });
  const failure = { code: 'turn_cancelled', message: 'Cancelled.', toolsRan: true } as const;
  recorder.end({ type: 'failed', failure });
  clock.advance(10);
  recorder.end({ type: 'failed', failure });
  t.match(recorder.record, { duration: 30, reason: 'failed', usage: undefined }, 'the first end counts');
});

t.test('C-241 durations do not change when the clock of the server jumps', async (t) => {
  const clock = new ManualClock();
  let jump = 0;
  const jumping = {
    now: () => clock.now() + jump,
    monotonic: () => clock.monotonic(),
    after: (ms: number, run: () => void) => clock.after(ms, run),
  };
  const recorder = new TurnRecorder(clock.monotonic(), jumping, true);
  recorder.add([{ type: 'step', step: 1, connection: 'fast' }]);
  clock.advance(100);
  jump = -86_400_000;
  recorder.add([{ type: 'text', text: 'Wait' }, call('a')]);
  jump = 86_400_000;
  clock.advance(50);
  recorder.add([result('a', 50), finished()]);
  t.match(recorder.record, {
    startedAt: START,
    duration: 150,
    steps: [{ start: 0, firstToken: 100, duration: 100 }],
    calls: [{ start: 100, duration: 50 }],
  });
});

t.test('counts that an older record lacks are 0', async (t) => {
  const usage = { promptTokens: 5, completionTokens: 7, cachedTokens: 1, reasoningTokens: 2 };
  const step = { connection: 'm', start: 0 };
  const stored = { queued: 0, duration: 1, reason: 'stop', usage, steps: [{ ...step, usage }, step], calls: [] };
  const { usage: total, steps } = parseRecord(JSON.stringify(stored)) ?? {};
  t.same(total, { ...usage, cacheWriteTokens: 0 });
  t.same(
    steps?.map((one) => one.usage),
    [{ ...usage, cacheWriteTokens: 0 }, undefined],
  );
});

t.test('only records are read as such', async (t) => {
  t.match(parseRecord(interruptedRecord()), { reason: 'interrupted', steps: [], calls: [] });
  for (const text of [undefined, '', '{', 'null', '[]', '{"steps":1,"calls":[]}'])
    t.equal(parseRecord(text), undefined, `${text}`);
});
