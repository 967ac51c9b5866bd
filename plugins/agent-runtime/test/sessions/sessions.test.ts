import { setImmediate } from 'node:timers/promises';
import type { AgentEvent, Interceptor } from '@plugboard/kernel';
import type { InterruptedTurn, TurnCommit } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  endOf,
  gatedModel,
  request,
  ScriptedModel,
  senderFor,
  startRuntime,
  storeWith,
  textOfEvents,
  user,
} from '../harness.js';

t.test('C-133 a retry joins a running or waiting turn and receives all its events', async (t) => {
  const { model, call } = gatedModel();
  const app = await startRuntime({ models: { fast: model } });
  const send = senderFor(app);
  const first = send('one', { fingerprint: 'a' });
  const { answer } = await call(1);
  const retry = send('one', { fingerprint: 'a' });
  const waiting = send('two', { fingerprint: 'b' });
  const retryOfWaiting = send('two', { fingerprint: 'b' });
  answer('hello');
  t.equal(textOfEvents(await first), 'hello');
  t.strictSame(await retry, await first);
  (await call(2)).answer('app');
  t.strictSame(await retryOfWaiting, await waiting);
  t.equal(model.asked.length, 2, 'two turns, not four');
  t.equal((await app.store.load({ project: 'default', agent: 'assistant', key: 's' })).version, 2);
});

t.test('C-133 a turn that has sent more than is kept is joined with all that it has said', async (t) => {
  const gate = Promise.withResolvers<void>();
  const spoke = Promise.withResolvers<void>();
  const long = 'x'.repeat(1024 * 1024 + 1);
  const model = new ScriptedModel([[{ type: 'text', text: long }, gate.promise, ...answerWith('end')]]);
  const app = await startRuntime({ models: { fast: model } });
  const turn = (async () => {
    for await (const batch of app.runtime.run(request(app.target(), { session: { key: 's', fingerprint: 'a' } }))) {
      if (batch.some(({ type }) => type === 'text')) spoke.resolve();
    }
  })();
  await spoke.promise;
  const joined = senderFor(app)('x', { fingerprint: 'a' });
  gate.resolve();
  await turn;
  t.ok(textOfEvents(await joined) === `${long}end`);
  t.equal(endOf(await joined).type, 'finished');
});

t.test('a turn ends when its last reader leaves', async (t) => {
  const { model, call } = gatedModel();
  const app = await startRuntime({ models: { fast: model } });
  const send = senderFor(app);
  const [one, two] = [new AbortController(), new AbortController()];
  const first = send('x', { fingerprint: 'a' }, one.signal);
  await call(1);
  const second = send('x', { fingerprint: 'a' }, two.signal);
  one.abort();
  t.match(endOf(await first), { failure: { code: 'abandoned' } });
  t.notOk(model.signals[0]?.aborted);
  two.abort();
  t.match(endOf(await second), { failure: { code: 'abandoned' } });
  t.ok(model.signals[0]?.aborted);
  const third = send('y');
  const { request: asked, answer } = await call(2);
  t.strictSame(asked.messages, [user('y')], 'nothing of it was kept');
  answer('ok');
  t.match(endOf(await third), { type: 'finished' });
});

t.test('onDisconnect: continue runs a turn to its end and stores it after a disconnect', async (t) => {
  const { model, call } = gatedModel();
  const app = await startRuntime({ agents: { assistant: { model: 'fast', onDisconnect: 'continue' } }, models: { fast: model } });
  const caller = new AbortController();
  const first = senderFor(app)('x', {}, caller.signal);
  const { answer } = await call(1);
  caller.abort();
  t.match(endOf(await first), { failure: { code: 'abandoned' } });
  answer('kept');
  const second = senderFor(app)('y');
  (await call(2)).answer('z');
  await second;
  t.strictSame(model.asked[1]?.messages, [user('x'), { role: 'assistant', content: 'kept' }, user('y')]);
});

t.test('R-081 reject: a turn of a busy session is refused at once, by the agent’s setting or the request’s', async (t) => {
  const { model, call } = gatedModel();
  const app = await startRuntime({ agents: { assistant: { model: 'fast', onBusy: 'reject' } }, models: { fast: model } });
  const send = senderFor(app);
  const first = send('one');
  const { answer } = await call(1);
  t.match(await send('two'), [{ type: 'failed', failure: { code: 'session_busy' } }]);
  const third = send('three', { busy: 'enqueue' });
  t.match(await send('four', { busy: 'reject' }), [{ failure: { code: 'session_busy' } }]);
  answer('1');
  await first;
  (await call(2)).answer('3');
  t.equal(textOfEvents(await third), '3');
});

t.test('R-081 interrupt: waiting and running turns fail without a trace, and the newer turn begins', async (t) => {
  const { model, call } = gatedModel();
  const app = await startRuntime({ models: { fast: model } });
  const send = senderFor(app);
  const first = send('one');
  await call(1);
  const second = send('two');
  const third = send('three', { busy: 'interrupt' });
  for (const turn of [first, second]) t.match(endOf(await turn), { failure: { code: 'turn_interrupted' } });
  const { request: asked, answer } = await call(2);
  t.strictSame(asked.messages, [user('three')]);
  answer('3');
  t.equal(textOfEvents(await third), '3');
});

t.test('a turn that ignores its abort is overdue after five seconds and can no longer commit', async (t) => {
  const clock = new ManualClock();
  const stuck = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const left: string[] = [];
  const stubborn: Interceptor = async function* (turn, next) {
    if (turn.messages.length === 1 && left.length === 0) {
      left.push('stuck');
      entered.resolve();
      await stuck.promise;
    }
    yield* next(turn);
  };
  const app = await startRuntime({ models: { fast: new ScriptedModel(() => answerWith('x')) }, interceptors: [stubborn], clock });
  const send = senderFor(app);
  const first = send('one');
  await entered.promise;
  const second = send('two', { busy: 'interrupt' });
  clock.advance(4999);
  await setImmediate();
  clock.advance(1);
  t.match(endOf(await first), { failure: { code: 'turn_interrupted' } });
  t.equal(textOfEvents(await second), 'x');
  stuck.resolve();
  await setImmediate();
  const { messages } = await app.store.load({ project: 'default', agent: 'assistant', key: 's' });
  t.strictSame(messages, [user('two'), { role: 'assistant', content: 'x' }]);
});

t.test('C-134 R-085 a crashing session does not affect others and is closed for a minute after three crashes', async (t) => {
  const clock = new ManualClock();
  const crashes: Interceptor = (turn, next) => {
    if (turn.messages.at(-1)?.content === 'crash') throw new Error('a defect');
    return next(turn);
  };
  const app = await startRuntime({
    models: { fast: new ScriptedModel(() => answerWith('fine')) },
    interceptors: [crashes],
    clock,
  });
  const send = senderFor(app);
  await send('before');
  for (let n = 0; n < 3; n++) t.match(endOf(await send('crash')), { failure: { code: 'crashed' } });
  t.match(await send('hello'), [{ type: 'failed', failure: { code: 'session_quarantined' } }]);
  t.match(endOf(await send('hello', { key: 'other' })), { type: 'finished' });
  clock.advance(59_999);
  t.match(await send('hello'), [{ failure: { code: 'session_quarantined' } }]);
  clock.advance(1);
  t.match(endOf(await send('hello')), { type: 'finished' });
  t.equal(
    (await app.store.load({ project: 'default', agent: 'assistant', key: 's' })).version,
    2,
    'what was kept before is there',
  );
});

t.test('turns that waited during a crash continue in their order', async (t) => {
  const gate = Promise.withResolvers<void>();
  const entered = Promise.withResolvers<void>();
  const crashes: Interceptor = async function* (turn, next) {
    if (turn.messages.at(-1)?.content === 'crash') {
      entered.resolve();
      await gate.promise;
      throw new Error('a defect');
    }
    yield* next(turn);
  };
  const model = new ScriptedModel(({ messages }) => answerWith(`${messages.length}`));
  const app = await startRuntime({ models: { fast: model }, interceptors: [crashes] });
  const send = senderFor(app);
  const crash = send('crash');
  await entered.promise;
  const second = send('two');
  const leaves = new AbortController();
  const third = send('three', {}, leaves.signal);
  const fourth = send('four');
  gate.resolve();
  t.match(endOf(await crash), { failure: { code: 'crashed' } });
  leaves.abort();
  t.equal(textOfEvents(await second), '1');
  t.match(endOf(await third), { failure: { code: 'abandoned' } });
  t.equal(textOfEvents(await fourth), '3');
});

t.test('many crashes of all sessions make the process not ready', async (t) => {
  const clock = new ManualClock();
  const app = await startRuntime({
    models: { fast: new ScriptedModel(() => [new Error('a defect')]) },
    clock,
  });
  for (let n = 0; n < 51; n++) await senderFor(app)('x', { key: `${n}` });
  t.equal(await app.runtime.ready(), false);
  t.ok(app.lines.some(({ event }) => event === 'supervisor_overrun'));
  clock.advance(60_000);
  t.equal(await app.runtime.ready(), true);
});

t.test('R-082 a hibernated session continues from the store', async (t) => {
  const clock = new ManualClock();
  let loads = 0;
  const app = await startRuntime({
    models: { fast: new ScriptedModel(({ messages }) => answerWith(`${messages.length}`)) },
    clock,
  });
  const load = app.store.load.bind(app.store);
  app.store.load = (id) => {
    loads++;
    return load(id);
  };
  const send = senderFor(app);
  await send('one');
  await send('two');
  t.equal(loads, 1, 'an active session is not read again');
  clock.advance(16 * 60_000);
  t.equal(textOfEvents(await send('three')), '5');
  t.equal(loads, 2);
});

t.test('a changed version in the store makes a session reload', async (t) => {
  const app = await startRuntime({ models: { fast: new ScriptedModel(({ messages }) => answerWith(`${messages.length}`)) } });
  const send = senderFor(app);
  await send('one');
  const id = { project: 'default', agent: 'assistant', key: 's' };
  await app.store.commit(id, { expected: 1, messages: [user('from elsewhere'), { role: 'assistant', content: 'ok' }] });
  t.equal(textOfEvents(await send('two')), '5');
});

t.test('at the start, interrupted turns are logged, and their input is kept if the agent says so', async (t) => {
  const commits: { key: string; turn: TurnCommit }[] = [];
  const left = (agent: string): InterruptedTurn => ({
    id: { project: 'default', agent, key: agent },
    turnId: `turn_${agent}`,
    input: [user('hello')],
  });
  const store = storeWith({
    version: async () => 4,
    turns: async () => [],
    commit: async ({ key }, turn) => void commits.push({ key, turn }),
    recover: async () => ['rolls', 'keeps', 'gone'].map(left),
  });
  const { lines } = await startRuntime({
    agents: { rolls: { model: 'fast' }, keeps: { model: 'fast', onRestart: 'keep-input' } },
    models: { fast: new ScriptedModel([]) },
    store,
  });
  t.strictSame(commits, [
    {
      key: 'keeps',
      turn: {
        turnId: 'turn_keeps',
        expected: 4,
        messages: [user('hello'), { role: 'assistant', content: 'The previous answer was interrupted.' }],
        record: JSON.stringify({ queued: 0, duration: 0, reason: 'interrupted', steps: [], calls: [] }),
      },
    },
  ]);
  t.strictSame(
    lines.map(({ agent, policy }) => `${agent} ${policy}`),
    ['rolls rollback', 'keeps keep-input', 'gone rollback'],
  );
});

t.test('a stopping server ends session turns with a reason for all their readers', async (t) => {
  const clock = new ManualClock();
  const { model, call } = gatedModel();
  const app = await startRuntime({ models: { fast: model }, clock });
  const turns: Promise<AgentEvent[]>[] = [
    senderFor(app)('x', { fingerprint: 'a' }),
    senderFor(app)('x', { fingerprint: 'a' }),
    senderFor(app)('y'),
  ];
  await call(1);
  const stopped = t.rejects(app.runtime.stop(new AbortController().signal), /2 turns were still running/);
  clock.advance(30_000);
  await stopped;
  for (const turn of turns) t.match(endOf(await turn), { failure: { code: 'stopped' } });
});
