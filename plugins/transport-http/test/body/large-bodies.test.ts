import { setImmediate } from 'node:timers/promises';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { LargeBodies } from '../../src/body/large-bodies.js';

t.test('S-62 large bodies pass one at a time, and callers take turns', async (t) => {
  const { bodies, passed } = start();
  for (const body of ['ann 1', 'ann 2', 'ann 3', 'ben 1', 'cid 1', 'cid 2']) bodies(body);
  await null;
  t.same(passed, ['ann 1']);
  for (let count = 2; count <= 6; count++) {
    await setImmediate();
    t.equal(passed.length, count);
  }
  t.same(passed, ['ann 1', 'ann 2', 'ben 1', 'cid 1', 'ann 3', 'cid 2']);
});

t.test('S-62 the next one follows after a pause as long as the work', async (t) => {
  const { bodies, passed, clock } = start((body) => body === 'ann 1' && clock.advance(70));
  bodies('ann 1');
  bodies('ann 2');
  await setImmediate();
  clock.advance(69);
  await setImmediate();
  t.same(passed, ['ann 1']);
  clock.advance(1);
  await setImmediate();
  t.same(passed, ['ann 1', 'ann 2']);
  await setImmediate();
  t.equal(clock.pending, 0);
});

/** @param work what is done with a body. */
function start(work: (body: string) => unknown = () => {}) {
  const clock = new ManualClock();
  const large = new LargeBodies({ clock });
  const passed: string[] = [];
  const bodies = (body: string) => {
    large.pass(body.split(' ')[0] ?? '').then(() => {
      passed.push(body);
      work(body);
    });
  };
  return { bodies, passed, clock };
}
