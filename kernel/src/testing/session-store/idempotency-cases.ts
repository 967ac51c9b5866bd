import assert from 'node:assert/strict';
import { VersionConflict } from '../../contracts/conversation-store.js';
import type { IdempotencyKey, IdempotencyRecord } from '../../contracts/idempotency-store.js';
import { assertLoaded, HOUR, MINUTE, SESSION, turn } from './assertions.js';
import { ODD_KEYS, ODD_TEXTS } from './fixtures.js';
import type { Suite } from './suite.js';

/** What was answered to requests that may be repeated. */
export function idempotencyCases({ add, clock, canReopen }: Suite): void {
  add('knows nothing of an idempotency key that nobody used', async ({ idempotency }) => {
    assert.equal(await idempotency.get(KEY), undefined);
  });

  add('keeps that tools began under an idempotency key, and in its place what was answered', async ({ idempotency }) => {
    await idempotency.put(record({ result: 'began' }));
    assert.deepEqual(await idempotency.get(KEY), record({ result: 'began' }));
    for (const text of ODD_TEXTS.filter((odd) => odd.isWellFormed())) {
      await idempotency.put(record({ result: { text } }));
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text } }));
    }
  });

  add('takes idempotency keys for data, and tells them apart by project, route and key', async ({ idempotency }) => {
    const keys: IdempotencyKey[] = [
      ...ODD_KEYS.map((key) => ({ ...KEY, key })),
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

  add('keeps an answer together with its turn, or not at all', async (store) => {
    await store.idempotency.put(record({ result: 'began' }));
    const idempotency = record({ result: { text: 'answer' } });
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(1), idempotency }), VersionConflict);
    assert.deepEqual(await store.idempotency.get(KEY), record({ result: 'began' }));
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
    assert.deepEqual(await store.idempotency.get(KEY), idempotency);
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
  });

  add('does not change with the answer that it was given', async ({ idempotency }) => {
    const result = { text: 'before' };
    const key = { ...KEY };
    await idempotency.put(record({ key, result }));
    result.text = 'after';
    key.project = 'other';
    assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'before' } }));
  });

  if (clock) {
    add('holds what was answered for 24 hours and no longer', async ({ idempotency }) => {
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
    add('knows its idempotency keys when it is opened again', async (store, again) => {
      const other = { ...KEY, key: 'other' };
      await store.idempotency.put(record({ result: 'began' }));
      const idempotency = record({ key: other, result: { text: 'answer' } });
      await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
      const second = await again();
      assert.deepEqual(await second.idempotency.get(KEY), record({ result: 'began' }));
      assert.deepEqual(await second.idempotency.get(other), idempotency);
    });
  }
}

const KEY: IdempotencyKey = { project: 'acme', route: '/v1/chat/completions', key: 'once' };

function record(more: Partial<IdempotencyRecord>): IdempotencyRecord {
  return { key: KEY, fingerprint: 'f1', result: 'began', ...more };
}
