import type { IdempotencyRecord } from '@plugboard/kernel/contracts';
import t from 'tap';
import { DAY, groupCommitted, HOUR, openStore } from './open-store.js';

function record(key: string, text = 'answer', project = 'acme'): IdempotencyRecord {
  return { key: { project, route: '/v1/chat/completions', key }, fingerprint: 'f1', result: { text } };
}

t.test(
  'S-42 deletes the oldest hundredth of the idempotency records beyond the maximum, of the project with the most',
  async (t) => {
    const { store, database, close } = openStore(t.testdir(), { caps: { maxRecords: 1_000 } });
    t.teardown(close);
    await store.idempotency.put(record('small', 'answer', 'small'));
    await Promise.all(Array.from({ length: 999 }, (_, n) => store.idempotency.put(record(`${n}`))));
    await store.idempotency.put(record('998', 'once more'));
    t.ok(await store.idempotency.claim(record('0').key, 'f1'), 'a record that is replaced counts once');
    await store.idempotency.put(record('one more'));
    t.equal(await store.idempotency.claim(record('0').key, 'f1'), undefined);
    t.ok(await store.idempotency.claim(record('10').key, 'f1'));
    t.ok(await store.idempotency.claim(record('small', '', 'small').key, 'f1'), 'the oldest record of all, of another project');
    t.equal(database.prepare('SELECT count(*) AS n FROM idempotency').get()?.n, 991);
  },
);

t.test('deletes expired records in small steps', async (t) => {
  const { store, database, clock, close } = openStore(t.testdir());
  t.teardown(close);
  await Promise.all(Array.from({ length: 150 }, (_, n) => store.idempotency.put(record(`${n}`))));
  clock.advance(HOUR);
  await store.idempotency.put(record('late'));
  const left: unknown[] = [];
  for (const ms of [DAY - HOUR, 50]) {
    clock.advance(ms);
    await groupCommitted();
    left.push(database.prepare('SELECT count(*) AS n FROM idempotency').get()?.n);
  }
  t.same(left, [51, 1]);
  t.ok(await store.idempotency.claim(record('late').key, 'f1'));
});
