import assert from 'node:assert/strict';
import { type IdempotencyKey, type IdempotencyRecord, VersionConflict } from '@plugboard/kernel/contracts';
import { assertAnnounced, assertLoaded, HOUR, MINUTE, SESSION, turn } from '../support/assertions.js';
import { UNUSUAL_KEYS, UNUSUAL_TEXTS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Idempotency records. */
export function idempotencyCases({ add, clock, canReopen }: Suite): void {
  add('has no record of an unused idempotency key', async ({ idempotency }) => {
    assert.equal(await idempotency.get(KEY), undefined);
  });

  add('replaces an idempotency record', async ({ idempotency }) => {
    await idempotency.put(record({ result: 'began' }));
    assert.deepEqual(await idempotency.get(KEY), record({ result: 'began' }));
    for (const text of UNUSUAL_TEXTS.filter((odd) => odd.isWellFormed())) {
      await idempotency.put(record({ result: { text } }));
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text } }));
    }
  });

  add('says how large a recorded answer is before it is read', async ({ idempotency }) => {
    await idempotency.put(record({ result: { text: 'ü'.repeat(1_000) } }));
    await assertAnnounced(2_000, (reserve) => idempotency.get(KEY, reserve));
  });

  add('treats idempotency keys as data and separates them by project, route and key', async ({ idempotency }) => {
    const keys: IdempotencyKey[] = [
      ...UNUSUAL_KEYS.map((key) => ({ ...KEY, key })),
      { ...KEY, project: 'other' },
      { ...KEY, route: '/elsewhere' },
      { project: 'a:b', route: 'c', key: 'd' },
      { project: 'a', route: 'b:c', key: 'd' },
      { project: 'a","b', route: 'c', key: 'd' },
      { project: 'a', route: 'b","c', key: 'd' },
    ];
    for (const [n, key] of keys.entries()) await idempotency.put(record({ key, result: { text: `${n}` } }));
    for (const [n, key] of keys.entries()) {
      assert.deepEqual(await idempotency.get(key), record({ key, result: { text: `${n}` } }), JSON.stringify(key));
    }
  });

  add('stores an idempotency record together with its turn, or not at all', async (store) => {
    await store.idempotency.put(record({ result: 'began' }));
    const idempotency = record({ result: { text: 'answer' } });
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(1), idempotency }), VersionConflict);
    assert.deepEqual(await store.idempotency.get(KEY), record({ result: 'began' }));
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
    assert.deepEqual(await store.idempotency.get(KEY), idempotency);
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
  });

  add(
    'stores neither a turn nor its idempotency record if one of them cannot be stored',
    async (store) => {
      const unreadable = {
        key: KEY,
        fingerprint: 'f1',
        get result(): IdempotencyRecord['result'] {
          throw new Error('this record cannot be read');
        },
      };
      await assert.rejects(store.commit(SESSION, { expected: 0, messages: turn(1), idempotency: unreadable }));
      await assertLoaded(store, SESSION, { version: 0, messages: [] }, 'the record could not be stored');
      const message = {
        role: 'user',
        content: 'hi',
        toJSON: unwritable,
        get name() {
          return unwritable();
        },
      } as never;
      await assert.rejects(store.commit(SESSION, { expected: 0, messages: [message], idempotency: record({}) }));
      assert.equal(await store.idempotency.get(KEY), undefined, 'the messages could not be stored');
      await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency: record({ result: { text: 'answer' } }) });
      await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    },
    'TurnCommit.idempotency',
  );

  add(
    'shows a turn and its idempotency record at the same moment',
    async (store) => {
      for (let n = 0; n < 10; n++) {
        const key = { ...KEY, key: `turn ${n}` };
        const idempotency = record({ key, result: { text: 'answer' } });
        let isCommitted = false;
        const commit = store.commit(SESSION, { expected: n, messages: turn(n), idempotency }).finally(() => {
          isCommitted = true;
        });
        while (!isCommitted) {
          // Whichever is read first: if it is there, the other one must be, too.
          if ((await store.version(SESSION)) > n)
            assert.ok(await store.idempotency.get(key), 'a turn was there before its record');
          if (await store.idempotency.get(key))
            assert.equal(await store.version(SESSION), n + 1, 'a record was there before its turn');
          await new Promise(setImmediate);
        }
        await commit;
      }
    },
    'TurnCommit.idempotency',
  );

  add('shares no idempotency record with its callers', async ({ idempotency }) => {
    const result = { text: 'before' };
    const key = { ...KEY };
    await idempotency.put(record({ key, result }));
    result.text = 'after';
    key.project = 'other';
    assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'before' } }));
  });

  if (clock) {
    add('keeps an idempotency record for 24 hours', async ({ idempotency }) => {
      await idempotency.put(record({ result: 'began' }));
      clock.advance(HOUR);
      await idempotency.put(record({ result: { text: 'answer' } }));
      clock.advance(24 * HOUR - MINUTE);
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'answer' } }));
      clock.advance(2 * MINUTE);
      assert.equal(await idempotency.get(KEY), undefined);
      await idempotency.put(record({ result: { text: 'another' } }));
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'another' } }));
    });
  }

  if (canReopen) {
    add('keeps idempotency records across a restart', async (store, reopen) => {
      const other = { ...KEY, key: 'other' };
      await store.idempotency.put(record({ result: 'began' }));
      const idempotency = record({ key: other, result: { text: 'answer' } });
      await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
      const second = await reopen();
      assert.deepEqual(await second.idempotency.get(KEY), record({ result: 'began' }));
      assert.deepEqual(await second.idempotency.get(other), idempotency);
    });
  }
}

const KEY: IdempotencyKey = { project: 'acme', route: '/v1/chat/completions', key: 'once' };

function record(more: Partial<IdempotencyRecord>): IdempotencyRecord {
  return { key: KEY, fingerprint: 'f1', result: 'began', ...more };
}

function unwritable(): never {
  throw new Error('this message cannot be written');
}
