import type { StateChange } from '@plugboard/kernel';
import { OPEN } from '@plugboard/kernel/contracts';
import { MemoryState } from '@plugboard/store-memory';
import t from 'tap';
import { ManualClock } from '../../src/base/clock.js';
import { ScriptedRuntime, type ScriptedTurn } from '../../src/context/scripted-runtime.js';
import { assertGrammar, readAll } from '../../src/suites/event-grammar.js';

const CHANGE = { entry: 'plugins.test', key: 'offset', text: '1' };

function opened(...turns: ScriptedTurn[]) {
  return openedWith(CHANGE, ...turns);
}

/** Turns that commit such a change, with their answer as its value. */
function openedWith(change: StateChange, ...turns: ScriptedTurn[]) {
  const state = new MemoryState(new ManualClock());
  const runtime = new ScriptedRuntime({ agents: ['helper'], state });
  runtime.enqueue(...turns);
  const resolved = runtime.resolve('helper');
  if (resolved.kind !== 'target') throw new Error('there is no agent');
  const run = (signal = new AbortController().signal) =>
    runtime.run({
      target: resolved.target,
      principal: OPEN,
      messages: [{ role: 'user', content: 'Hi' }],
      session: { key: 's' },
      commitState: (answer) => [{ ...change, text: JSON.stringify(answer[0]?.content) }],
      clientTools: [],
      params: {},
      incremental: true,
      requestId: 'req_1',
      metadata: {},
      signal,
    });
  return { runtime, state, run };
}

t.test('turns answer, fail, and commit state in the order of the script', async (t) => {
  const { runtime, state, run } = opened({ text: 'Hello.' }, { failure: 'model_failed' });
  t.match(assertGrammar(await readAll(run())), { type: 'finished' });
  t.equal(await state.get(CHANGE.entry, CHANGE.key), '"Hello."');
  t.match(assertGrammar(await readAll(run())), { type: 'failed', failure: { code: 'model_failed' } });
  t.equal(await state.get(CHANGE.entry, CHANGE.key), '"Hello."', 'a failed turn commits nothing');
  t.match(assertGrammar(await readAll(run())), { type: 'finished' }, 'without a script it answers');
  t.equal(runtime.requests.length, 3);
  t.strictSame(runtime.resolve('nobody'), { kind: 'unknown' });
});

t.test('a turn whose change expects another value fails', async (t) => {
  const { state, run } = openedWith({ ...CHANGE, expected: '0' });
  t.match(assertGrammar(await readAll(run())), { type: 'failed', failure: { code: 'session_busy' } });
  t.equal(await state.get(CHANGE.entry, CHANGE.key), undefined);
});

t.test('a turn that waits ends when it is cancelled, or its caller leaves', async (t) => {
  const never = new Promise(() => {});
  const { state, run } = opened({ after: never }, { after: never });
  const cancelled = run();
  const reading = readAll(cancelled);
  await cancelled.cancel();
  t.match(assertGrammar(await reading), { type: 'failed', failure: { code: 'turn_cancelled' } });
  t.match(assertGrammar(await readAll(run(AbortSignal.abort()))), { type: 'failed' });
  t.equal(await state.get(CHANGE.entry, CHANGE.key), undefined);
});
