import { setImmediate } from 'node:timers/promises';
import type { Interceptor } from '@plugboard/kernel';
import t from 'tap';
import { answerWith, collect, request, ScriptedModel, startRuntime } from '../../harness.js';

/**
 * Runs a turn through interceptors, the entries `i0`, `i1`, …. Returns its end and the errors that
 * were logged.
 */
async function run(...interceptors: readonly unknown[]) {
  const app = await startRuntime({
    models: { fast: new ScriptedModel([answerWith('Hello')]) },
    interceptors: interceptors as readonly Interceptor[],
  });
  const events = await collect(app.runtime.run(request(app.target())));
  return { end: events.at(-1), errors: app.lines.map(({ err }) => (err as Error).message) };
}

const crashed = { type: 'failed', failure: { code: 'crashed', message: /internal error/ } };
const passing: Interceptor = (turn, next) => next(turn);

t.test('an interceptor that returns no events is named, with the cure', async (t) => {
  const cure = 'write async function*, or return next(turn)';
  const returns: readonly (readonly [unknown, string])[] = [
    [async (...[turn, next]: Parameters<Interceptor>) => next(turn), 'a Promise'],
    [(...[turn, next]: Parameters<Interceptor>) => void next(turn), 'undefined'],
    [() => null, 'null'],
    [() => ({}), 'an object'],
    [() => passing, 'a function'],
    [() => 'Hello', 'a string'],
  ];
  for (const [interceptor, what] of returns) {
    const { end, errors } = await run(interceptor);
    t.match(end, crashed, what);
    t.strictSame(errors, [`i0: the interceptor returned ${what}, not events; ${cure}`]);
  }
  const { errors } = await run(passing, async () => {});
  t.strictSame(errors, [`i1: the interceptor returned a Promise, not events; ${cure}`], 'the inner one, not the outer one');
});

t.test('an async interceptor that throws fails its turn, not the process', async (t) => {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  t.teardown(() => process.off('unhandledRejection', note));
  const { end } = await run(async () => {
    throw new Error('no');
  });
  t.match(end, crashed);
  await setImmediate();
  t.strictSame(unhandled, []);
});

t.test('an interceptor that yields a single event is named, with the cure', async (t) => {
  const single: Interceptor = async function* (turn, next) {
    for await (const [event] of next(turn)) yield event as never;
  };
  const { end, errors } = await run(single);
  t.match(end, crashed);
  t.strictSame(errors, ['i0: the interceptor yielded an object, not an array of events; write yield [event]']);
  t.match((await run(single, passing)).errors, [/^i0, i1: one of these interceptors yielded an object/]);
});

t.test('an interceptor that ends without a terminal event is named, with the cure', async (t) => {
  const empty: Interceptor = async function* () {};
  const { end, errors } = await run(empty);
  t.match(end, crashed);
  t.strictSame(errors, ['i0: the interceptor ended without `finished` or `failed`; pass on the last event of next(turn)']);
  t.match((await run(passing, empty)).errors, [/^i0, i1: one of these interceptors ended without/]);
});

t.test('an interceptor that ends quietly after the turn was aborted does not crash it', async (t) => {
  const caller = new AbortController();
  const app = await startRuntime({
    models: { fast: new ScriptedModel([]) },
    interceptors: [
      async function* () {
        caller.abort();
        yield [];
      },
    ],
  });
  const events = await collect(app.runtime.run(request(app.target(), { signal: caller.signal })));
  t.match(events, [{ type: 'failed', failure: { code: 'abandoned' } }]);
});
