import { setImmediate } from 'node:timers/promises';
import { OPEN } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { collect, endOf, gatedModel, memoryStore, request, startRuntime, tool } from '../../harness.js';

const never = new AbortController().signal;

/** A runtime whose only turn waits for the model, and whose caller has left. */
async function turnWithoutReader(settings: object = {}) {
  const clock = new ManualClock();
  const { model, call } = gatedModel();
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', onDisconnect: 'continue' } },
    settings,
    models: { fast: model },
    clock,
  });
  const caller = new AbortController();
  const left = collect(app.runtime.run(request(app.target(), { session: { key: 's' }, signal: caller.signal })));
  const { answer } = await call(1);
  caller.abort();
  t.match(endOf(await left), { failure: { code: 'abandoned' } });
  const stored = async () => (await app.store.load({ project: 'default', agent: 'assistant', key: 's' })).messages.length;
  return { ...app, clock, answer, stored };
}

t.test('R-060 a turn whose caller has left is waited for when the server stops', async (t) => {
  const { runtime, requestStop, host, clock, answer, stored, target } = await turnWithoutReader();
  host.phase = 'stopping';
  requestStop();
  const stopped = runtime.stop(never);
  t.match(endOf(await collect(runtime.run(request(target())))), { failure: { code: 'draining' } }, 'no new turn begins');
  clock.advance(29_999);
  await setImmediate();
  answer('done');
  await stopped;
  t.equal(await stored(), 2);
});

t.test('R-061 a turn that still runs at `limits.drain` is ended, and the stop fails', async (t) => {
  const { runtime, requestStop, clock, stored } = await turnWithoutReader({ limits: { drain: '2s' } });
  requestStop();
  clock.advance(1_500); // other entries stopped meanwhile
  const stopped = runtime.stop(never);
  clock.advance(499);
  await setImmediate();
  t.equal(runtime.stopLimit, 8_000);
  clock.advance(1);
  await t.rejects(stopped, {
    message: '1 turn was still running at the limit (`limits.drain`) and had to be ended',
  });
  t.equal(await stored(), 0);
});

t.test('R-060 a tool that a person runs is waited for like a turn, and ended at `limits.drain`', async (t) => {
  for (const isLate of [false, true]) {
    const clock = new ManualClock();
    const began = Promise.withResolvers<AbortSignal>();
    const result = Promise.withResolvers<string>();
    const run = (_: unknown, { signal }: { readonly signal: AbortSignal }) => {
      began.resolve(signal);
      return result.promise;
    };
    const { runtime, requestStop } = await startRuntime({
      agents: { assistant: { model: 'fast', tools: ['desk'] } },
      settings: { limits: { drain: '2s' } },
      models: { fast: gatedModel().model },
      tools: { desk: { tools: () => [tool('look', run, {})] } },
      clock,
    });
    const call = { agent: 'assistant', entry: 'desk', tool: 'look', arguments: '{}', isApproved: true, requestId: 'r' };
    const ran = runtime.cards.runTool({ ...call, signal: never }, OPEN);
    const signal = await began.promise;
    requestStop();
    let isDrained = false;
    const drained = runtime.drain().then(() => {
      isDrained = true;
    });
    await setImmediate();
    t.equal(isDrained, false);
    t.equal(signal.aborted, false);
    if (isLate) clock.advance(2_000);
    else result.resolve('found');
    t.equal(signal.aborted, isLate);
    if (isLate) {
      clock.advance(10_000);
      await t.rejects(ran, { code: 'stopped' });
    } else t.match(await ran, { content: 'found' });
    await drained;
  }
});

t.test('a stop in a hurry ends running turns early enough for them to settle', async (t) => {
  const { runtime, requestStop, clock } = await turnWithoutReader();
  requestStop();
  const stopped = runtime.stop(never, 6_000);
  clock.advance(1_000);
  await t.rejects(stopped, /1 turn was still running/);
});

t.test('a turn that was ended counts as cut, also if another one is stored later', async (t) => {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const commit = store.commit.bind(store);
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  store.commit = async (...turn) => {
    reached.resolve();
    await held.promise;
    await commit(...turn);
  };
  const { model, call } = gatedModel();
  const settings = { limits: { drain: '10s' } };
  const app = await startRuntime({ agents: { assistant: { model: 'fast' } }, settings, models: { fast: model }, store, clock });
  const cut = collect(app.runtime.run(request(app.target())));
  const stored = collect(app.runtime.run(request(app.target(), { session: { key: 's' } })));
  (await call(2)).answer('done');
  await reached.promise;
  const stopped = app.runtime.stop(never);
  clock.advance(10_000); // `limits.drain`
  t.match(endOf(await cut), { failure: { code: 'stopped' } });
  clock.advance(1_000); // the time of the whole stop, less the time to settle
  held.resolve();
  t.match(endOf(await stored), { type: 'finished' });
  await t.rejects(stopped, /^1 turn was still running/);
});
