import t from 'tap';
import { systemClock, systemIds } from '../../../src/host/base/ambient.js';

t.test('ids have the requested length and digits and are unique', async (t) => {
  t.match(systemIds.base62(32), /^[0-9A-Za-z]{32}$/);
  t.match(systemIds.hex(32), /^[0-9a-f]{32}$/);
  t.equal(systemIds.base62(0), '');
  const many = new Set(Array.from({ length: 1000 }, () => systemIds.base62(22))); // more than a block of random bytes
  t.equal(many.size, 1000);
  const digits = new Set([...many].join(''));
  t.equal(digits.size, 62, 'every digit comes up');
  const fraction = systemIds.fraction();
  t.ok(fraction >= 0 && fraction < 1);
});

t.test('the clock returns the time, never goes back, and fires a timer once', async (t) => {
  t.ok(Math.abs(systemClock.now() - Date.now()) < 1000);
  const before = systemClock.monotonic();
  t.ok(systemClock.monotonic() >= before);
  const hold = setInterval(() => undefined, 1000); // timers of the clock keep no process alive
  t.teardown(() => clearInterval(hold));
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancelled = systemClock.after(1, () => t.fail('was cancelled'));
  cancelled.cancel();
  systemClock.after(2, resolve).refresh();
  await promise;
});

t.test('a timer of more than 24.8 days does not fire at once', async (t) => {
  const long = [2 ** 31, 90 * 86_400_000, Number.POSITIVE_INFINITY].map((ms) =>
    systemClock.after(ms, () => t.fail(`${ms} ms are over`)),
  );
  t.teardown(() => {
    for (const timer of long) timer.cancel();
  });
  for (const timer of long) timer.refresh();
  await new Promise((resolve) => setTimeout(resolve, 20));
});

t.test('a timer that is restarted fires when its time has passed since, also when it has fired before', async (t) => {
  const hold = setInterval(() => undefined, 1000);
  t.teardown(() => clearInterval(hold));
  const { promise, resolve } = Promise.withResolvers<void>();
  /** When the timer was restarted, fired and was restarted, and fired again. */
  const times: number[] = [];
  const note = () => times.push(performance.now());
  systemClock.after(15, () => {
    note();
    restarted.refresh();
  });
  const restarted = systemClock.after(20, () => {
    note();
    if (times.length === 2) restarted.refresh();
    else resolve();
  });
  const cancelled = systemClock.after(1, () => t.fail('was cancelled'));
  cancelled.refresh();
  cancelled.cancel();
  await promise;
  const [first = 0, second = 0, third = 0] = times;
  t.equal(times.length, 3);
  // Node.js rounds times to milliseconds. Not restarted, it would fire 5 ms after the first.
  t.ok(second - first >= 15, `${second - first} ms`);
  t.ok(third - second >= 15, `${third - second} ms`);
});
