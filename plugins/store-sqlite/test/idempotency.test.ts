import type { IdempotencyRecord } from '@plugboard/kernel';
import t from 'tap';
import { DAY, HOUR, openStore } from './opened.js';

function answer(key: string, text = 'answer'): IdempotencyRecord {
  return { key: { project: 'acme', route: '/v1/chat/completions', key }, fingerprint: 'f1', result: { text } };
}

t.test('keeps 100,000 idempotency keys, and then forgets the oldest', async (t) => {
  const { store, database, close } = openStore(t.testdir());
  t.teardown(close);
  await Promise.all(Array.from({ length: 100_000 }, (_, n) => store.idempotency.put(answer(`${n}`))));
  await store.idempotency.put(answer('99999', 'once more'));
  t.ok(await store.idempotency.get(answer('0').key), 'a key that is put again is no further one');
  await store.idempotency.put(answer('one more'));
  t.equal(await store.idempotency.get(answer('0').key), undefined);
  t.ok(await store.idempotency.get(answer('1').key));
  t.equal(database.prepare('SELECT count(*) AS n FROM idempotency').get()?.n, 100_000);
});

t.test('deletes what has expired, in small steps', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  await Promise.all(Array.from({ length: 150 }, (_, n) => store.idempotency.put(answer(`${n}`))));
  clock.advance(HOUR);
  await store.idempotency.put(answer('late'));
  const left: unknown[] = [];
  for (const ms of [DAY - HOUR, 50]) {
    clock.advance(ms);
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    left.push(database.prepare('SELECT count(*) AS n FROM idempotency').get()?.n);
  }
  t.same(left, [51, 1]);
  t.ok(await store.idempotency.get(answer('late').key));
});
