import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import type { Interceptor } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  accountOf,
  answerWith,
  collect,
  endOf,
  memoryStore,
  request,
  ScriptedModel,
  startRuntime,
  storeWith,
  textOfEvents,
} from '../../harness.js';

const agents = { assistant: { model: 'fast', timeout: '1m' } };

t.test('a stateless turn that ignores its time limit is overdue after five seconds', async (t) => {
  const clock = new ManualClock();
  const stuck = Promise.withResolvers<void>();
  const stubborn: Interceptor = async function* (turn, next) {
    await stuck.promise;
    yield* next(turn);
  };
  const app = await startRuntime({
    agents,
    models: { fast: new ScriptedModel(() => answerWith('x')) },
    interceptors: [stubborn],
    clock,
  });
  let events: unknown;
  const turn = collect(app.runtime.run(request(app.target()))).then((all) => {
    events = all;
    return all;
  });
  await setImmediate();
  clock.advance(64_999);
  await setImmediate();
  t.equal(events, undefined);
  clock.advance(1);
  t.match(endOf(await turn), { failure: { code: 'timed_out' } });
  await app.runtime.stop(new AbortController().signal);
  t.match(
    app.lines.filter(({ level }) => level === 'warn'),
    [{ event: 'turn_overdue', request_id: 'req_1', agent: 'assistant', reason: /did not finish within 60 s/ }],
    'the log says so, although its code never settles',
  );
  stuck.resolve();
  await setImmediate();
  t.equal(clock.pending, 0);
});

t.test('a stateless turn that ends in time after its abort leaves no timer', async (t) => {
  const clock = new ManualClock();
  const never = new Promise<void>(() => {});
  const app = await startRuntime({ agents, models: { fast: new ScriptedModel([[never]]) }, clock });
  const turn = collect(app.runtime.run(request(app.target())));
  await setImmediate();
  clock.advance(60_000);
  t.match(endOf(await turn), { failure: { code: 'timed_out' } });
  await setImmediate();
  t.equal(clock.pending, 0);
});

t.test('the claim of an idempotency key has a time limit of 30 seconds', async (t) => {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const claim = store.idempotency.claim.bind(store.idempotency);
  const late = Promise.withResolvers<void>();
  store.idempotency.claim = async (...claimed) => {
    await late.promise;
    return claim(...claimed);
  };
  const app = await startRuntime({ agents, models: { fast: new ScriptedModel(() => answerWith('x')) }, store, clock });
  const key = { project: 'default', route: '/', key: 'k' };
  const first = app.runtime.claim(key, 'a', accountOf());
  clock.advance(30_000);
  t.match(await first, { kind: 'failed', failure: { code: 'store_failed' } });
  late.resolve();
  await setImmediate();
  t.match(await app.runtime.claim(key, 'a', accountOf()), { kind: 'new' }, 'what was claimed too late is free again');
  t.match(app.lines, [{ err: { cause: { message: 'no answer within 30 s' } } }]);
  t.equal(clock.pending, 0);
  const free = await collect(app.runtime.run(request(app.target())));
  t.equal(textOfEvents(free), 'x');
});

t.test('a commit that never settles releases the turn’s permit and its key', async (t) => {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const commit = store.commit.bind(store);
  store.commit = () => new Promise(() => {});
  const app = await startRuntime({
    agents,
    settings: { limits: { runningTurns: 1 } },
    models: { fast: new ScriptedModel(() => answerWith('x')) },
    store,
    clock,
  });
  const key = { project: 'default', route: '/', key: 'k' };
  const claimed = await app.runtime.claim(key, 'a', accountOf());
  if (claimed.kind !== 'new') throw new Error(claimed.kind);
  const recorder = { add() {}, text: () => '' };
  const turn = collect(
    app.runtime.run(request(app.target(), { session: { key: 's' }, idempotency: { claim: claimed.claim, recorder } })),
  );
  await setImmediate();
  clock.advance(30_000);
  t.match(endOf(await turn), { failure: { code: 'store_failed' } });
  store.commit = commit;
  t.match(await app.runtime.claim(key, 'b', accountOf()), { kind: 'new' }, 'the key is free');
  t.match(endOf(await collect(app.runtime.run(request(app.target(), { session: { key: 's' } })))), { type: 'finished' });
});

t.test('a health check of the store that hangs or throws makes the server not ready', async (t) => {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const app = await startRuntime({ agents, models: { fast: new ScriptedModel(() => answerWith('x')) }, store, clock });
  t.equal(await app.runtime.ready(), true);
  store.health = () => new Promise(() => {});
  const ready = app.runtime.ready();
  clock.advance(2_000);
  t.equal(await ready, false);
  store.health = () => Promise.reject(new Error('gone'));
  t.equal(await app.runtime.ready(), false);
});

t.test('a beginning that fails is abandoned: no restart stores the input of a turn whose caller saw it fail', async (t) => {
  const clock = new ManualClock();
  const abandoned: string[] = [];
  const begun = Promise.withResolvers<string>();
  const store = storeWith({
    begin: (_, { turnId }) => {
      begun.resolve(turnId);
      return new Promise(() => {});
    },
    abandon: async (_, turnId) => void abandoned.push(turnId),
  });
  const app = await startRuntime({ agents, models: { fast: new ScriptedModel([]) }, store, clock });
  const turn = collect(app.runtime.run(request(app.target(), { session: { key: 's' } })));
  const turnId = await begun.promise;
  clock.advance(30_000);
  t.match(endOf(await turn), { failure: { code: 'store_failed' } });
  t.strictSame(abandoned, [turnId]);
});

t.test('an error that follows from the end of a turn is logged as that end, not as a defect', async (t) => {
  const sleeps: Interceptor = async function* (turn, next) {
    await delay(60_000, undefined, { signal: turn.signal }); // throws an AbortError
    yield* next(turn);
  };
  const caller = new AbortController();
  const app = await startRuntime({ agents, models: { fast: new ScriptedModel([]) }, interceptors: [sleeps] });
  const turn = collect(app.runtime.run(request(app.target(), { signal: caller.signal })));
  await setImmediate();
  caller.abort();
  t.match(endOf(await turn), { failure: { code: 'abandoned' } });
  t.strictSame(
    app.lines.map(({ level }) => level).filter((level) => level !== 'debug'),
    [],
  );
});
