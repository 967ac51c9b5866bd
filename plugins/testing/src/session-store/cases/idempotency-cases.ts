import assert from 'node:assert/strict';
import { type IdempotencyKey, type IdempotencyRecord, VersionConflict } from '@plugboard/kernel/contracts';
import { assertAnnounced, assertLoaded, HOUR, MINUTE, recordOf, SESSION, turn } from '../support/assertions.js';
import { UNUSUAL_KEYS, UNUSUAL_TEXTS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Idempotency records. */
export function idempotencyCases({ add, clock, canReopen }: Suite): void {
  add('has no record of an unused idempotency key', async ({ idempotency }) => {
    assert.equal(await recordOf(idempotency, KEY), undefined);
  });

  add('PG-19 gives an idempotency key to one of several requests at once', async ({ idempotency }) => {
    const claims = await Promise.all(Array.from({ length: 8 }, (_, n) => idempotency.claim(KEY, `f${n}`)));
    const first = claims.indexOf(undefined);
    const running = { key: KEY, fingerprint: `f${first}`, result: 'running' };
    assert.deepEqual(
      claims.filter((_, n) => n !== first),
      Array(7).fill(running),
    );
    await idempotency.put(record({ fingerprint: `f${first}`, result: 'began' }));
    assert.deepEqual(await idempotency.claim(KEY, 'f1'), running, 'also after its tools have begun');
    assert.equal(await idempotency.claim({ ...KEY, key: 'other' }, 'f1'), undefined);
  });

  add('frees a released idempotency key, unless tools had begun', async ({ idempotency }) => {
    assert.equal(await idempotency.claim(KEY, 'f1'), undefined);
    await Promise.all([idempotency.release(KEY), idempotency.release(KEY)]);
    assert.equal(await idempotency.claim(KEY, 'f2'), undefined);
    await idempotency.put(record({ fingerprint: 'f2', result: 'began' }));
    await idempotency.release(KEY);
    for (let n = 0; n < 2; n++) {
      assert.deepEqual(await idempotency.claim(KEY, 'f2'), record({ fingerprint: 'f2', result: 'began' }));
    }
  });

  add('ends the claim of an idempotency key with its answer', async (store) => {
    const { idempotency } = store;
    const answered = record({ result: { text: 'answer' } });
    const other = record({ key: { ...KEY, key: 'other' }, result: { text: 'another' } });
    for (const { key } of [answered, other]) assert.equal(await idempotency.claim(key, 'f1'), undefined);
    await idempotency.put(answered);
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency: other });
    for (const one of [answered, other]) {
      assert.deepEqual(await idempotency.claim(one.key, 'f1'), one);
      await idempotency.release(one.key);
      assert.deepEqual(await idempotency.claim(one.key, 'f1'), one);
    }
  });

  add('replaces what has begun by its answer', async ({ idempotency }) => {
    for (const [n, text] of UNUSUAL_TEXTS.filter((odd) => odd.isWellFormed()).entries()) {
      const key = { ...KEY, key: `key ${n}` };
      await idempotency.put(record({ key, result: 'began' }));
      assert.equal((await idempotency.claim(key, 'f1'))?.result, 'began');
      await idempotency.put(record({ key, result: { text } }));
      assert.deepEqual(await recordOf(idempotency, key), record({ key, result: { text } }));
    }
  });

  add('says how large a recorded answer is before it is read', async ({ idempotency }) => {
    await idempotency.put(record({ result: { text: 'ü'.repeat(1_000) } }));
    await assertAnnounced(2_000, (reserve) => idempotency.claim(KEY, 'f1', reserve));
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
    for (const key of keys) assert.equal(await idempotency.claim(key, 'f1'), undefined);
    for (const [n, key] of keys.entries()) await idempotency.put(record({ key, result: { text: `${n}` } }));
    for (const [n, key] of keys.entries()) {
      assert.deepEqual(await recordOf(idempotency, key), record({ key, result: { text: `${n}` } }), JSON.stringify(key));
    }
  });

  add('stores an idempotency record together with its turn, or not at all', async (store) => {
    await store.idempotency.put(record({ result: 'began' }));
    const idempotency = record({ result: { text: 'answer' } });
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(1), idempotency }), VersionConflict);
    assert.deepEqual(await recordOf(store.idempotency, KEY), record({ result: 'began' }));
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
    assert.deepEqual(await recordOf(store.idempotency, KEY), idempotency);
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
      assert.equal(await recordOf(store.idempotency, KEY), undefined, 'the messages could not be stored');
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
            assert.ok(await recordOf(store.idempotency, key), 'a turn was there before its record');
          if (await recordOf(store.idempotency, key))
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
    assert.deepEqual(await recordOf(idempotency, KEY), record({ result: { text: 'before' } }));
  });

  if (clock) {
    add('keeps an idempotency record for 24 hours', async ({ idempotency }) => {
      await idempotency.put(record({ result: 'began' }));
      clock.advance(HOUR);
      await idempotency.put(record({ result: { text: 'answer' } }));
      clock.advance(24 * HOUR - MINUTE);
      assert.deepEqual(await recordOf(idempotency, KEY), record({ result: { text: 'answer' } }));
      clock.advance(2 * MINUTE);
      assert.equal(await recordOf(idempotency, KEY), undefined);
      await idempotency.put(record({ result: { text: 'another' } }));
      assert.deepEqual(await recordOf(idempotency, KEY), record({ result: { text: 'another' } }));
    });
  }

  if (canReopen) {
    add('keeps idempotency records across a restart', async (store, reopen) => {
      const other = { ...KEY, key: 'other' };
      const claimed = { ...KEY, key: 'claimed' };
      await store.idempotency.claim(claimed, 'f1');
      await store.idempotency.claim(KEY, 'f1');
      await store.idempotency.put(record({ result: 'began' }));
      const idempotency = record({ key: other, result: { text: 'answer' } });
      await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
      const second = await reopen();
      assert.deepEqual(await recordOf(second.idempotency, KEY), record({ result: 'began' }));
      assert.deepEqual(await recordOf(second.idempotency, other), idempotency);
      assert.equal(await second.idempotency.claim(claimed, 'f2'), undefined, 'a claim ends with its server');
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
