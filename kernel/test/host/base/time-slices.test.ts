import { setImmediate } from 'node:timers/promises';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { TimeSlices } from '../../../src/host/base/time-slices.js';

t.test('S-71 on a server that has time, work begins at once', async (t) => {
  const { slices, clock } = start();
  for (let count = 0; count < 1_000; count++) {
    for (const caller of ['ann', 'ben']) if (slices.next(caller)) t.fail('it waits');
    await settled();
    clock.advance(0.5);
  }
  t.equal(clock.pending, 0, 'no timer');
});

t.test('S-71 after long work the caller that used least is next, one in each round of the event loop', async (t) => {
  const { clock, request, begun } = start();
  request('ann 1', 20);
  await settled();
  for (const name of ['ann 2', 'ann 3', 'ben 1', 'cid 1', 'ben 2']) request(name, 5);
  t.same(begun, ['ann 1'], 'the event loop has not gone round');
  for (let count = 2; count <= 6; count++) {
    await setImmediate();
    t.equal(begun.length, count);
  }
  t.same(begun, ['ann 1', 'ben 1', 'cid 1', 'ben 2', 'ann 2', 'ann 3']);
  t.equal(clock.pending, 0);
});

t.test('S-71 callers that are ahead of another one pause for twice as long as their work took', async (t) => {
  const { clock, request, pass, begun } = start();
  request('ben 1', 5);
  await setImmediate();
  request('ann 1', 300);
  await setImmediate();
  request('ann 2', 40);
  request('ann 3', 10);
  for (let passed = 0; passed < 580; passed += 29) {
    request(`ben ${passed}`, 0.5);
    await pass(28.5);
    t.notOk(begun.includes('ann 2'), `after ${passed} ms`);
  }
  await pass(20);
  t.equal(begun.at(-1), 'ann 2');
  request('ben last', 0.5);
  await pass(70);
  t.equal(begun.at(-1), 'ben last');
  await pass(10);
  t.equal(begun.at(-1), 'ann 3');
  t.equal(clock.pending, 0);
});

t.test('S-71 pauses follow each other', async (t) => {
  const { slices, request, work, pass, begun } = start();
  request('ben 1', 5);
  await setImmediate();
  request('ann 1', 100);
  await setImmediate();
  slices.goOn('ann');
  work(50);
  await setImmediate();
  request('ann 2', 1);
  await pass(240);
  t.equal(begun.at(-1), 'ann 1');
  await pass(10);
  t.equal(begun.at(-1), 'ann 2', '200 ms after the first work, 100 ms more after the second');
});

t.test('S-71 work that goes on after a wait is counted for its caller', async (t) => {
  const { clock, slices, request, work, pass, begun } = start();
  request('ben 1', 5);
  await setImmediate();
  request('ann 1', 1);
  await setImmediate();
  slices.goOn('ann');
  work(50);
  await setImmediate();
  request('ann 2', 1);
  t.same(begun, ['ben 1', 'ann 1']);
  t.equal(clock.pending, 1, 'it is ahead');
  await pass(100);
  t.equal(begun.at(-1), 'ann 2');
});

t.test('S-71 a pause is as much longer as work was not measured in the second before', async (t) => {
  for (const [unmeasured, pause] of [
    [0, 200],
    [300, 400],
    [9_000, 800],
  ] as const) {
    const { request, work, pass, begun } = start();
    request('cid 1', 300);
    await setImmediate();
    work(unmeasured);
    await pass(1_000);
    request('ben 1', 5);
    await setImmediate();
    request('ann 1', 100);
    await setImmediate();
    request('ann 2', 1);
    for (let passed = 0; passed < pause - 10; passed += 10) {
      request('ben', 0);
      await pass(10);
    }
    t.notOk(begun.includes('ann 2'), `${unmeasured} ms`);
    await pass(20);
    t.ok(begun.includes('ann 2'), `${unmeasured} ms`);
  }
});

t.test('S-71 a caller does not pause that is alone: the others have left, or used next to nothing', async (t) => {
  const { clock, request, pass, begun } = start();
  request('ben 1', 5);
  await setImmediate();
  await pass(260);
  request('probe 1', 0.2);
  request('ann 1', 900);
  await setImmediate();
  request('probe 2', 0.2);
  for (const name of ['ann 2', 'ann 3', 'ann 4']) request(name, 900);
  for (let round = 0; round < 5; round++) await setImmediate();
  t.same(begun, ['ben 1', 'probe 1', 'ann 1', 'probe 2', 'ann 2', 'ann 3', 'ann 4']);
  t.equal(clock.pending, 0);
});

/** Lets work go as far as it can. */
function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(() => process.nextTick(resolve)));
}

function start() {
  const clock = new ManualClock();
  let active = 0;
  const slices = new TimeSlices(clock, () => active);
  const begun: string[] = [];
  const work = (ms: number) => {
    active += ms;
    clock.advance(ms);
  };
  /** Lets time pass in which nothing works. */
  const pass = async (ms: number) => {
    clock.advance(ms);
    await setImmediate();
  };
  /** @param ms that its work takes. */
  const request = (name: string, ms: number) => {
    const run = () => {
      begun.push(name);
      work(ms);
    };
    const slice = slices.next(name.split(' ')[0] ?? '');
    if (slice) void slice.then(run);
    else run();
  };
  return { slices, clock, request, work, pass, begun };
}
