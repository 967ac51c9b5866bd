import t from 'tap';
import { ManualClock } from '../../src/index.js';

t.test('a manual clock moves only when it is advanced, and both its times move together', async (t) => {
  const clock = new ManualClock(1000);
  t.same([clock.now(), clock.monotonic()], [1000, 0]);
  clock.advance(250);
  t.same([clock.now(), clock.monotonic()], [1250, 250]);
  t.equal(new Date(new ManualClock().now()).toISOString(), '2026-01-01T00:00:00.000Z');
});

t.test(
  'timers run when they are due, each at its own moment, the earliest first, equals in the order they were set',
  async (t) => {
    const clock = new ManualClock();
    const ran: string[] = [];
    const set = (name: string, ms: number) => clock.after(ms, () => ran.push(`${name} at ${clock.monotonic()}`));
    set('late', 30);
    set('first', 10);
    set('second', 10);
    set('never', 31);
    clock.advance(9);
    t.same(ran, []);
    clock.advance(21);
    t.same(ran, ['first at 10', 'second at 10', 'late at 30']);
    t.equal(clock.pending, 1);
  },
);

t.test('a timer that a timer sets runs within the same move where it is due by then', async (t) => {
  const clock = new ManualClock();
  const ran: number[] = [];
  const tick = () => {
    ran.push(clock.monotonic());
    clock.after(10, tick);
  };
  clock.after(10, tick);
  clock.advance(35);
  t.same(ran, [10, 20, 30]);
  t.equal(clock.monotonic(), 35);
});

t.test('a timer can be cancelled, and begun again', async (t) => {
  const clock = new ManualClock();
  let runs = 0;
  const timer = clock.after(10, () => runs++);
  clock.advance(9);
  timer.refresh();
  clock.advance(9);
  t.equal(runs, 0);
  clock.advance(1);
  t.equal(runs, 1);
  timer.refresh();
  timer.cancel();
  clock.advance(100);
  t.equal(runs, 1);
  t.equal(clock.pending, 0);
});
