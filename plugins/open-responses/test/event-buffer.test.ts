import t from 'tap';
import { EventBuffer } from '../src/live/event-buffer.js';

t.test('keeps 2,000 events, and those that a reader still has to take', async (t) => {
  const buffer = new EventBuffer();
  for (let at = 0; at < 3_000; at++) buffer.push(`${at}`);
  buffer.trim(400);
  t.same([buffer.has(399), buffer.has(400), buffer.has(3_000), buffer.has(3_001)], [false, true, true, false]);
  buffer.trim(3_000);
  t.same([buffer.has(999), buffer.has(1_000)], [false, true]);
  t.same(buffer.from(2_998), ['2998', '2999']);
  t.equal(buffer.end, 3_000);
});

t.test('keeps 1 MiB, and gives it in batches', async (t) => {
  const buffer = new EventBuffer();
  for (let at = 0; at < 300; at++) buffer.push(`${at}`.padEnd(10_000, 'x'));
  buffer.trim(300);
  t.ok(buffer.size <= 2 ** 20);
  let next = 300 - Math.floor(2 ** 20 / 10_000);
  t.notOk(buffer.has(next - 1));
  const whole = buffer.sizeFrom(next);
  let taken = 0;
  while (next < 300) {
    const batch = buffer.from(next);
    t.ok(batch.length >= 1 && batch.length <= 7);
    t.equal(Number.parseInt(batch[0] ?? '', 10), next);
    next += batch.length;
    taken += batch.join('').length;
  }
  t.equal(taken, whole);
});
