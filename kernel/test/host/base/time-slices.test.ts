import { setImmediate } from 'node:timers/promises';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { TimeSlices } from '../../../src/host/base/time-slices.js';

t.test('S-71 on a server that has time, work begins at once', async (t) => {
  const { slices, clock } = start();
  for (let count = 0; count < 1_000; count++) {
    for (const caller of ['ann', 'ben']) if (slices.next(caller)) t.fail('it waits');
    await work();
    clock.advance(0.5);
  }
  t.equal(clock.pending, 0, 'no timer');
});

t.test('S-71 after a long piece of work, who used least is next, one in each turn of the event loop', async (t) => {
  const { clock, request, begun } = start();
  request('ann 1', 20);
  await work();
  for (const name of ['ann 2', 'ann 3', 'ben 1', 'cid 1', 'ben 2']) request(name, 5);
  t.same(begun, ['ann 1'], 'the event loop has not turned');
  for (let count = 2; count <= 6; count++) {
    await setImmediate();
    t.equal(begun.length, count);
  }
  t.same(begun, ['ann 1', 'ben 1', 'cid 1', 'ben 2', 'ann 2', 'ann 3']);
  t.equal(clock.pending, 0);
});

t.test('S-71 a caller that is ahead of another one pauses for twice as long as its work took', async (t) => {
  const { clock, request, begun } = start();
  request('ben 1', 5);
  await setImmediate();
  request('ann 1', 300);
  await setImmediate();
  request('ben 2', 5);
  await setImmediate();
  request('ann 2', 40);
  request('ann 3', 10);
  t.same(begun, ['ben 1', 'ann 1', 'ben 2']);
  for (let passed = 5; passed < 580; passed += 29) {
    request(`ben ${passed}`, 0.5);
    clock.advance(28.5);
    await setImmediate();
  }
  t.notOk(begun.includes('ann 2'), 'nothing but short work of the other one');
  clock.advance(20);
  await setImmediate();
  t.equal(begun.at(-1), 'ann 2');
  request('ben last', 0.5);
  clock.advance(70);
  await setImmediate();
  t.equal(begun.at(-1), 'ben last');
  clock.advance(10);
  await setImmediate();
  t.equal(begun.at(-1), 'ann 3');
});

t.test('S-71 a caller that is alone does not pause, whatever a probe uses', async (t) => {
  const { clock, request, begun } = start();
  request('probe 1', 0.2);
  request('ann 1', 900);
  await setImmediate();
  request('probe 2', 0.2);
  for (const name of ['ann 2', 'ann 3', 'ann 4']) request(name, 900);
  for (let turn = 0; turn < 5; turn++) await setImmediate();
  t.same(begun, ['probe 1', 'ann 1', 'probe 2', 'ann 2', 'ann 3', 'ann 4']);
  t.equal(clock.pending, 0);
});

/** Lets the work of a request go as far as it can. */
function work(): Promise<void> {
  return new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
}

function start() {
  const clock = new ManualClock();
  const slices = new TimeSlices(clock);
  const begun: string[] = [];
  /** @param ms that its work takes. */
  const request = (name: string, ms: number) => {
    const run = () => {
      begun.push(name);
      clock.advance(ms);
    };
    const slice = slices.next(name.split(' ')[0] ?? '');
    if (slice) void slice.then(run);
    else run();
  };
  return { slices, clock, request, begun };
}
