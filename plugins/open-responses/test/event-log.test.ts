import t from 'tap';
import { seeded } from '../../../test/support/seeded.js';
import { EventLog } from '../src/live/event-log.js';

const kept = (onReaders = () => {}) => new EventLog(true, onReaders);

const numbered = (from: number, to: number, size = 0) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`.padEnd(size, 'x'));

t.test('keeps 2,000 events, and those that a reader still has to take', async (t) => {
  const log = kept();
  const slow = log.join(0, true);
  void log.write(numbered(0, 3_000));
  t.ok(log.join(0, true), 'nothing is dropped before the reader has taken it');
  for (let events = await slow?.next(); slow && !slow.isOver && log.end > slow.position; events = await slow.next()) t.ok(events);
  log.close();
  t.equal(log.end, 3_000);

  const alone = kept();
  void alone.write(numbered(0, 3_000));
  t.equal(alone.join(999, true), undefined);
  t.same(await alone.join(2_998, true)?.next(), ['2998', '2999']);
  t.ok(alone.join(3_000, true), 'the next event to come');
  t.equal(alone.join(3_001, true), undefined);
});

t.test('keeps 1 MiB, and gives it in batches of about 64 KiB', async (t) => {
  const log = kept();
  void log.write(numbered(0, 300, 10_000));
  t.ok(log.bytes <= 2 ** 20);
  const first = 300 - Math.floor(2 ** 20 / 10_000);
  t.equal(log.join(first - 1, true), undefined);
  const reader = log.join(first, true);
  log.close();
  let next = first;
  for (let events = await reader?.next(); events; events = await reader?.next()) {
    t.ok(events.length >= 1 && events.length <= 7);
    t.equal(Number.parseInt(events[0] ?? '', 10), next);
    next += events.length;
  }
  t.equal(next, 300);
});

t.test('makes the writer wait for a reader that is behind, until it has read, left, or the limit is removed', async (t) => {
  const large = ['x'.repeat(100_000)];
  const waits = async (full: Promise<void> | undefined) =>
    full !== undefined && (await Promise.race([full.then(() => false), new Promise((resolve) => setImmediate(resolve, true))]));
  const withReader = () => {
    const log = kept();
    return { log, reader: log.join(0, true) };
  };
  {
    const { log, reader } = withReader();
    const full = log.write(large);
    t.equal(await waits(full), true);
    await reader?.next();
    t.equal(await waits(full), false);
  }
  {
    const { log, reader } = withReader();
    const all = [log.write(large), log.write(['small'])];
    await reader?.next();
    await reader?.next();
    t.same(await Promise.all(all.map(waits)), [false, false], 'whichever of two writes it waits for');
  }
  {
    const { log, reader } = withReader();
    const full = log.write(large);
    reader?.leave();
    t.equal(await waits(full), false);
    t.equal(log.write(large), undefined, 'nobody reads');
  }
  {
    const { log } = withReader();
    const full = log.write(large);
    log.removeLimit();
    t.equal(await waits(full), false);
    t.equal(log.write(large), undefined);
  }
});

t.test('gives `svc:` events to readers that asked for them only', async (t) => {
  const log = kept();
  const [plain, extended] = [log.join(0, false), log.join(0, true)];
  const waiting = plain?.next();
  const events = ['{"type":"svc:session.state","sequence_number":0}', '{"type":"response.created","sequence_number":1}'];
  void log.write(events.slice(0, 1));
  void log.write(events.slice(1));
  t.same(await waiting, [events[1]], 'an event that is left out does not wake the reader');
  t.same(await extended?.next(), events);
  void log.write(events.slice(0, 1));
  log.close();
  t.equal(await plain?.next(), undefined);
  t.equal(plain?.isOver, true);
});

t.test('reports when the first reader joins and the last one leaves', async (t) => {
  const reported: boolean[] = [];
  const log: EventLog = kept(() => reported.push(log.isRead));
  const [first, second] = [log.join(0, true), log.join(0, true)];
  const waiting = first?.next();
  first?.leave();
  first?.leave();
  t.equal(await waiting, undefined);
  t.same(reported, [true]);
  second?.leave();
  log.join(0, true);
  t.same(reported, [true, false, true]);
});

t.test('keeps nothing that was read of a response that cannot be resumed', async (t) => {
  const log = new EventLog(false, () => {});
  const reader = log.join(0, true);
  void log.write(numbered(0, 3));
  t.same(await reader?.next(), ['0', '1', '2']);
  t.equal(log.bytes, 0);
  t.equal(log.join(0, true), undefined);
  reader?.leave();
  void log.write(numbered(3, 4));
  t.same([log.bytes, log.end], [0, 4]);
});

t.test('100,000 events are the same for ten readers that stop, leave and come back anywhere', async (t) => {
  const log = kept();
  const random = seeded(43);
  const readers = Array.from({ length: 10 }, () => ({ reader: log.join(0, true), next: 0 }));
  let most = 0;
  let waits: Promise<void> | undefined;
  const read = async (one: (typeof readers)[number]) => {
    const events = await one.reader?.next();
    if (!events?.every((event) => event === eventOf(one.next++))) t.fail(`other events before ${one.next}`);
  };
  while (log.end < 100_000) {
    for (const one of readers) {
      if (one.reader && random() < 0.05) {
        one.reader.leave();
        one.reader = undefined;
      } else if (!one.reader && random() < 0.5) {
        one.reader = log.join(one.next, true);
        if (!one.reader) one.next = log.end; // dropped while it was away
      } else if (one.reader && one.next < log.end && random() < 0.5) await read(one);
    }
    if (waits && (await isPending(waits))) continue;
    waits = log.write(Array.from({ length: 1 + Math.floor(random() * 20) }, (_, index) => eventOf(log.end + index)));
    most = Math.max(most, log.bytes);
  }
  t.ok(most <= 1024 * 1024 + 64 * 1024 + 20 * 200, `${most} bytes were kept at most`);
  log.close();
  for (const one of readers) while (one.reader?.isOver === false) await read(one);
  for (const { reader, next } of readers) if (reader) t.equal(next, log.end);
});

/** An event of 60 to 200 characters, which depends on its number alone. */
function eventOf(sequence: number): string {
  return `${sequence} `.padEnd(60 + (sequence % 140), 'x');
}

async function isPending(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => false), new Promise<boolean>((resolve) => setImmediate(resolve, true))]);
}
