import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { HeapGuard } from '../src/limits/heap-guard.js';

const LIMIT = 1_000;

/** A guard of a heap that the test fills. */
function guardOf(used: number) {
  const clock = new ManualClock();
  const heap = { used, limit: LIMIT };
  const guard = new HeapGuard({ clock }, () => heap);
  guard.onFullCollection();
  return { clock, heap, guard };
}

t.test('load is shed above 85 % of the heap, right after a full collection', async (t) => {
  t.equal(guardOf(850).guard.shedding, false);
  t.equal(guardOf(851).guard.shedding, true);
});

t.test('shedding ends as soon as memory is free, without another full collection', async (t) => {
  const { clock, heap, guard } = guardOf(900);
  heap.used = 760;
  clock.advance(1_000);
  t.equal(guard.shedding, true, 'not below 75 % yet');
  heap.used = 740;
  clock.advance(1_000);
  t.equal(guard.shedding, false);
  t.equal(clock.pending, 0);
});

t.test('a full collection that frees memory ends shedding at once', async (t) => {
  const { clock, heap, guard } = guardOf(900);
  heap.used = 760;
  guard.onFullCollection();
  t.equal(guard.shedding, true);
  heap.used = 700;
  guard.onFullCollection();
  t.equal(guard.shedding, false);
  t.equal(clock.pending, 0);
});

t.test('a full heap that is not collected for 10 seconds admits work, and sheds it again when it is', async (t) => {
  const { clock, guard } = guardOf(900);
  for (let second = 0; second < 9; second++) clock.advance(1_000);
  t.equal(guard.shedding, true);
  guard.onFullCollection();
  for (let second = 0; second < 9; second++) clock.advance(1_000);
  t.equal(guard.shedding, true, 'counts from the last full collection');
  clock.advance(1_000);
  t.equal(guard.shedding, false);
  guard.onFullCollection();
  t.equal(guard.shedding, true);
});

t.test('a stopped guard keeps no timer', async (t) => {
  const { clock, guard } = guardOf(900);
  guard.stop();
  t.equal(clock.pending, 0);
});
