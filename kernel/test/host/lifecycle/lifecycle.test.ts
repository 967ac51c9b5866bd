import { setImmediate } from 'node:timers/promises';
import { CapturedLog, eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { StartError } from '../../../src/host/base/errors.js';
import { LifecycleRunner } from '../../../src/host/lifecycle/lifecycle.js';
import { StatusBoard } from '../../../src/host/lifecycle/status-board.js';
import type { Lifecycle } from '../../../src/host/plugin/plugin.js';

interface Part extends Lifecycle {
  readonly optional?: boolean;
}

/** Entries `a`, `b` … of a server, in this order. `seen` is what happened to them. */
function serverOf(parts: Readonly<Record<string, (seen: (what: string) => void) => Part>>) {
  const clock = new ManualClock();
  const log = new CapturedLog();
  const status = new StatusBoard(new Map());
  const seen: string[] = [];
  const disabled: string[] = [];
  const order = Object.entries(parts).map(([id, make]) => {
    status.add(id, 'registered');
    const { optional = false, ...lifecycle } = make((what) => seen.push(`${id} ${what}`));
    return { id, optional, lifecycle, plugin: { name: `plugin-${id}`, version: '1.2.3', path: `/plugins/${id}.js` } };
  });
  const runner = new LifecycleRunner({
    order,
    status,
    clock,
    log: log.logger(clock),
    disable: ({ id }) => disabled.push(id),
    standIns: async () => [],
  });
  const statuses = () => status.entries().map(({ entry, status }) => `${entry} ${status}`);
  return { runner, clock, log, status, seen, disabled, statuses };
}

const well = (seen: (what: string) => void): Part => ({ start: () => seen('start'), stop: () => seen('stop') });
function messagesOf(error: unknown): string[] {
  if (!(error instanceof StartError)) throw error;
  return error.failures.map(({ message }) => message);
}

t.test('a server that was stopped does not start again, and says so', async (t) => {
  const { runner, seen } = serverOf({ a: well });
  await runner.start();
  await runner.start();
  await runner.stop();
  await t.rejects(runner.start(), { code: 'START_AFTER_STOP', message: /was stopped and does not start again/ });
  t.same(seen, ['a start', 'a stop']);
  const { runner: never } = serverOf({ a: well });
  await never.stop();
  await t.rejects(never.start(), StartError);
});

/** A promise that never settles, and one that resolves when it was requested. */
function hanging() {
  const asked = Promise.withResolvers<AbortSignal>();
  const hang = (signal: AbortSignal) => {
    asked.resolve(signal);
    return new Promise<void>(() => undefined);
  };
  return { asked: asked.promise, hang };
}

t.test('entries start one by one, and stop in reverse', async (t) => {
  const { runner, seen, status, statuses } = serverOf({
    a: (seen) => ({
      start: async () => {
        seen('starts');
        await null;
        seen('started');
      },
      stop: () => seen('stop'),
    }),
    b: well,
    c: () => ({}),
  });
  t.equal(status.phase, 'starting');
  await runner.start();
  t.same(seen, ['a starts', 'a started', 'b start']);
  t.equal(status.phase, 'running');
  t.same(statuses(), ['a running', 'b running', 'c running']);
  t.same(await runner.stop(), []);
  t.same(seen.slice(3), ['b stop', 'a stop']);
  t.equal(status.phase, 'stopped');
  t.same(statuses(), ['a stopped', 'b stopped', 'c stopped']);
});

t.test(
  'R-050 an entry that throws in start ends the start: all are stopped in reverse, and every failure is reported',
  async (t) => {
    let aborted = false;
    const { runner, seen, status, statuses } = serverOf({
      a: well,
      b: (seen) => ({
        ...well(seen),
        stop: () => {
          throw 'no Error at all';
        },
      }),
      c: (seen) => ({
        start(signal) {
          signal.onabort = () => {
            aborted = true;
          };
          throw new Error('port 1 is taken');
        },
        stop: () => seen('stop'),
      }),
      d: well,
    });
    const error = await runner.start().catch((error) => error);
    t.same(messagesOf(error), [
      'c did not start: port 1 is taken (plugin plugin-c 1.2.3, /plugins/c.js)',
      'b did not stop cleanly: it threw "no Error at all", which is not an Error (plugin plugin-b 1.2.3, /plugins/b.js)',
    ]);
    t.match(error.failures[0].cause, { message: 'port 1 is taken' });
    t.same(seen, ['a start', 'b start', 'c stop', 'a stop']);
    t.ok(aborted);
    t.equal(status.phase, 'stopped');
    t.same(statuses(), ['a stopped', 'b failed', 'c failed', 'd registered']);
    t.equal((await runner.stop()).length, 1, 'a second stop reports the same failure');
    t.same(seen.length, 4);
  },
);

t.test('R-051 an entry that hangs in start fails at its limit and is named meanwhile', async (t) => {
  const { asked, hang } = hanging();
  const { runner, clock, log, seen } = serverOf({
    a: well,
    b: (seen) => ({ start: hang, stop: () => seen('stop'), startLimit: 12_000 }),
  });
  const started = runner.start().catch((error) => error);
  const signal = await asked;
  clock.advance(11_999);
  t.same(
    log.lines.map(({ level, msg }) => `${level} ${msg}`),
    ['warn still starting: b, 5 s', 'warn still starting: b, 10 s'],
  );
  t.notOk(signal.aborted);
  clock.advance(1);
  t.same(messagesOf(await started), [
    'b did not start within 12 s; check that the services it connects to are reachable (plugin plugin-b 1.2.3, /plugins/b.js)',
  ]);
  t.ok(signal.aborted);
  t.same(seen, ['a start', 'b stop', 'a stop']);
  t.equal(clock.pending, 0);
});

t.test('R-051 an entry that hangs in stop is abandoned at its limit, and the others still stop', async (t) => {
  const { asked, hang } = hanging();
  const { runner, clock, seen } = serverOf({ a: well, b: () => ({ stop: hang }), c: well });
  await runner.start();
  const stopped = runner.stop();
  const signal = await asked;
  clock.advance(10_000);
  t.ok(signal.aborted);
  t.same(seen, ['a start', 'c start', 'c stop'], 'it has a second to say what it cut');
  clock.advance(1_000);
  t.match(await stopped, [{ message: 'b did not stop within 10 s and was abandoned (plugin plugin-b 1.2.3, /plugins/b.js)' }]);
  t.ok(signal.aborted);
  t.same(seen, ['a start', 'c start', 'c stop', 'a stop']);
});

t.test('R-065 a stop with a time limit gives every entry some time', async (t) => {
  const first = hanging();
  const second = hanging();
  const { runner, clock, seen } = serverOf({
    a: well,
    b: () => ({ stop: second.hang }),
    c: () => ({ stop: first.hang, stopLimit: 60_000 }),
  });
  await runner.start();
  const stopped = runner.stop({ within: 9_000 });
  await first.asked;
  clock.advance(9_000);
  await second.asked;
  clock.advance(500);
  t.equal((await stopped).length, 2);
  t.same(seen, ['a start', 'a stop']);
});

t.test('an optional entry that does not start is stopped and disabled, and the others continue', async (t) => {
  const { runner, log, seen, disabled, statuses } = serverOf({
    a: well,
    b: () => ({
      optional: true,
      start: () => Promise.reject(new Error('no such server')),
      stop() {
        throw new Error('nothing to stop');
      },
    }),
    c: well,
  });
  await runner.start();
  t.same(disabled, ['b']);
  t.same(
    log.lines.map(({ msg }) => msg),
    [
      'disabled: b did not start: no such server (plugin plugin-b 1.2.3, /plugins/b.js)',
      'b did not stop cleanly: nothing to stop (plugin plugin-b 1.2.3, /plugins/b.js)',
    ],
  );
  t.same(statuses(), ['a running', 'b disabled', 'c running']);
  t.same(await runner.stop(), [], 'the stop does not fail');
  t.same(seen, ['a start', 'c start', 'c stop', 'a stop']);
});

t.test('a stop during the start ends it and stops the started entries', async (t) => {
  const { asked, hang } = hanging();
  const { runner, seen, status } = serverOf({
    a: well,
    b: (seen) => ({ optional: true, start: hang, stop: () => seen('stop') }),
    c: well,
  });
  const started = runner.start().catch((error) => error);
  const signal = await asked;
  const stopped = runner.stop();
  t.equal(status.phase, 'stopping');
  t.same(await stopped, []);
  t.ok(signal.aborted);
  t.match(await started, { name: 'StartError', failures: [], message: 'the server was asked to stop before it had started' });
  t.same(seen, ['a start', 'b stop', 'a stop']);
});

t.test('stop is safe without a start and when called twice', async (t) => {
  const { runner, seen, status } = serverOf({ a: well });
  t.equal(runner.stop(), runner.stop());
  t.same(await runner.stop(), []);
  t.equal(status.phase, 'stopped');
  await t.rejects(runner.start(), StartError);
  t.same(seen, []);
});

t.test('an error without a message is reported by its class', async (t) => {
  const failing = async (error: unknown) => {
    const { runner } = serverOf({ a: () => ({ start: () => Promise.reject(error) }) });
    return messagesOf(await runner.start().catch((error) => error))[0];
  };
  t.match(await failing(new RangeError()), 'a did not start: RangeError (');
  t.match(await failing(null), 'a did not start: it threw null, which is not an Error (');
  t.match(
    await failing(new AggregateError([new Error('refused by ::1'), new Error('refused by 127.0.0.1')])),
    'refused by ::1; refused by 127.0.0.1',
  );
});

t.test('only allowed state transitions are possible', async (t) => {
  const board = new StatusBoard(new Map());
  board.add('a', 'registered');
  t.throws(() => board.set('a', 'running'), { message: 'a cannot become running from registered' });
  t.throws(() => board.set('b', 'starting'), { message: 'b cannot become starting from nothing' });
});

t.test('a reload calls the running entries with a reload method in order and reports each failure', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { runner, seen, clock } = serverOf({
    a: (seen) => ({
      reload: async () => {
        seen('reads');
        await gate.promise;
        seen('read');
      },
    }),
    b: well,
    c: () => ({
      reload: () => {
        throw new Error('no such file');
      },
    }),
    d: () => ({ startLimit: 500, reload: () => new Promise(() => undefined) }),
    e: (seen) => ({ reload: () => seen('read') }),
  });
  t.same(await runner.reload(), { entries: [], failures: [] }, 'no entry runs yet');
  await runner.start();
  seen.length = 0;
  const [first, second] = [runner.reload(), runner.reload()];
  await setImmediate();
  t.same(seen, ['a reads'], 'one after the other');
  gate.resolve();
  for (let round = 0; round < 2; round++) {
    await eventually(() => seen.filter((what) => what === 'a read').length > round);
    await setImmediate();
    clock.advance(500);
  }
  const { entries, failures } = await first;
  t.same(entries, ['a', 'e']);
  t.match(
    failures.map(({ message }) => message),
    [/^c did not reload: no such file \(plugin plugin-c/, /^d did not reload: it took longer than 0\.5 s/],
  );
  t.same((await second).entries, ['a', 'e']);
  t.same(seen, ['a reads', 'a read', 'e read', 'a reads', 'a read', 'e read'], 'never two at once');
});

t.test('a stop ends a reload without a failure', async (t) => {
  const { asked, hang } = hanging();
  const { runner, seen } = serverOf({ a: () => ({ reload: hang }), b: (seen) => ({ reload: () => seen('read') }) });
  await runner.start();
  const reloading = runner.reload();
  await asked;
  t.same(await runner.stop(), []);
  t.same(await reloading, { entries: [], failures: [] });
  t.same(seen, []);
});
