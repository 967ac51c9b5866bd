import { setImmediate } from 'node:timers/promises';
import type { AgentEvent } from '@plugboard/kernel';
import { Account, Budget, NO_USAGE, TurnError } from '@plugboard/kernel/contracts';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { TurnTask } from '../../../src/engine/turn/turn-task.js';
import { collect, endOf, request, ScriptedModel, startRuntime } from '../../harness.js';

const started: AgentEvent = { type: 'started', turnId: 't', agent: 'assistant' };
const finished: AgentEvent = { type: 'finished', reason: 'stop', usage: NO_USAGE };
const stopped = new TurnError('stopped', 'The server stopped.');

/** A turn of an agent, and what was released in which order. */
async function turnOf(
  options: { onDisconnect?: 'continue' | 'cancel'; signal?: AbortSignal; fingerprint?: string; resumable?: number } = {},
) {
  const { onDisconnect = 'cancel', signal = new AbortController().signal, fingerprint, resumable } = options;
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', onDisconnect } },
    models: { fast: new ScriptedModel([]) },
  });
  const clock = new ManualClock();
  const budget = new Budget({ name: 'memory of callers', unit: 'bytes', limit: 1_000_000, setting: 'limits.memory' });
  const turn = new TurnTask({
    account: new Account(budget, undefined),
    request: request(app.target(), { session: { key: 's' }, signal, resumable }),
    fingerprint,
    idempotent: undefined,
    clock,
    ids: new SequentialIds(),
  });
  const released: string[] = [];
  for (const name of ['pin', 'permit']) turn.defer(() => released.push(name));
  /** Starts phases that never settle. */
  const hang = () => turn.start(() => new Promise(() => {}));
  return { turn, clock, released, hang };
}

t.test('what a turn holds is given back before its readers see the end, the last first, and once', async (t) => {
  const { turn, released, hang } = await turnOf();
  hang();
  const seen: unknown[] = [];
  const reading = (async () => {
    for await (const [event] of turn.events) seen.push(event?.type, [...released]);
  })();
  turn.write([started]);
  await setImmediate();
  turn.finish([finished]);
  turn.finish([finished]);
  await turn.fail(new Error('late'));
  await reading;
  t.strictSame(seen, ['started', [], 'finished', ['permit', 'pin']]);
  turn.defer(() => released.push('late'));
  t.strictSame(released, ['permit', 'pin', 'late'], 'what is deferred after the end is released at once');
});

t.test('a waiting turn ends at once, and its phases never start', async (t) => {
  const { turn, clock, released } = await turnOf();
  turn.requestEnd(stopped);
  t.strictSame(released, ['permit', 'pin']);
  turn.start(() => t.fail('it started') as never);
  t.match(await collect(turn.events), [{ type: 'failed', failure: { code: 'stopped', toolsRan: false } }]);
  t.equal(clock.pending, 0);
});

t.test(
  'a running turn that does not settle is overdue after five seconds: later writes fail, a later end is ignored',
  async (t) => {
    const { turn, clock, released, hang } = await turnOf();
    hang();
    turn.requestEnd(stopped);
    turn.requestEnd(new TurnError('turn_cancelled', 'The second reason is ignored.'));
    clock.advance(4_999);
    t.strictSame(released, []);
    clock.advance(1);
    t.strictSame(released, ['permit', 'pin']);
    t.throws(() => turn.write([started]), { code: 'stopped' });
    t.throws(() => turn.beginStoring(), { code: 'stopped' }, 'what is overdue is never stored');
    turn.finish([finished]);
    t.match(await collect(turn.events), [{ type: 'failed', failure: { code: 'stopped', toolsRan: true } }]);
  },
);

t.test('R-023 a turn that is being stored ends as the store decides, however often it is cancelled', async (t) => {
  const { turn, clock, hang } = await turnOf();
  hang();
  turn.beginStoring();
  turn.requestEnd(stopped);
  let isCancelled = false;
  const cancelled = turn.cancel().then(() => {
    isCancelled = true;
  });
  clock.advance(60_000);
  await Promise.resolve();
  t.notOk(isCancelled || turn.hasEnded);
  turn.finish([finished]);
  await cancelled;
  t.equal(endOf(await collect(turn.events)).type, 'finished');

  const refused = await turnOf();
  refused.hang();
  refused.turn.beginStoring();
  refused.turn.requestEnd(stopped);
  await refused.turn.fail(new TurnError('store_failed', 'The disk is full.'));
  t.match(endOf(await collect(refused.turn.events)), { failure: { code: 'store_failed' } });
});

t.test('the last reader ends the turn, unless its agent continues without readers', async (t) => {
  for (const onDisconnect of ['cancel', 'continue'] as const) {
    const caller = new AbortController();
    const { turn, hang } = await turnOf({ onDisconnect, signal: caller.signal, fingerprint: 'f' });
    hang();
    const retry = new AbortController();
    const second = turn.join(retry.signal, turn.account);
    caller.abort();
    t.match(endOf(await collect(turn.events)), { failure: { code: 'abandoned' } }, 'the turn continues without the caller');
    t.notOk(turn.signal.aborted);
    retry.abort();
    t.equal(turn.signal.aborted, onDisconnect === 'cancel');
    if (onDisconnect === 'cancel') await turn.fail(turn.signal.reason);
    t.match(endOf(await collect(second)), { failure: { code: 'abandoned' } });
  }
});

t.test('a turn that is resumable waits for its reader, which still receives it and does not hold it back', async (t) => {
  const { turn, clock, hang } = await turnOf({ resumable: 30_000 });
  hang();
  const reader = turn.events[Symbol.asyncIterator]();
  const text = (size: number): AgentEvent => ({ type: 'text', text: 'x'.repeat(size) });
  for (const isRead of [false, true, false]) {
    turn.events.setRead(isRead);
    clock.advance(29_999);
    const full = turn.write([text(100_000)]);
    t.equal(full !== undefined, isRead, 'only a reader that is read makes the turn wait');
    t.match(await reader.next(), { value: [{ type: 'text' }] });
    await full;
    t.notOk(turn.signal.aborted);
  }
  clock.advance(1);
  t.match(turn.signal.reason, { code: 'turn_cancelled' });

  const second = await turnOf({ resumable: 30_000, fingerprint: 'f' });
  second.hang();
  const joined = second.turn.join(new AbortController().signal, second.turn.account);
  second.turn.events.setRead(false);
  second.clock.advance(60_000);
  t.notOk(second.turn.signal.aborted, 'another reader is left');
  joined.setRead(false);
  second.turn.finish([finished]);
  second.clock.advance(60_000);
  t.notOk(second.turn.signal.aborted, 'it has ended');
  t.equal(endOf(await collect(second.turn.events)).type, 'finished');

  for (const onDisconnect of ['cancel', 'continue'] as const) {
    const { turn, clock, hang } = await turnOf({ onDisconnect, ...(onDisconnect === 'continue' && { resumable: 30_000 }) });
    hang();
    turn.events.setRead(false);
    clock.advance(60_000);
    t.equal(turn.signal.aborted, onDisconnect === 'cancel', onDisconnect);
  }
});

t.test('a reader whose turn ends with it receives the end of the turn, not a guess', async (t) => {
  const caller = new AbortController();
  const { turn, hang } = await turnOf({ signal: caller.signal });
  hang();
  turn.beginStoring();
  caller.abort();
  turn.finish([finished]);
  t.equal(endOf(await collect(turn.events)).type, 'finished');
});
