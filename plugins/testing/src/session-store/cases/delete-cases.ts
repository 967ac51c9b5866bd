import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { conversationId, VersionConflict } from '@plugboard/kernel/contracts';
import { assertInfo, assertLoaded, commitTurns, DAY, HOUR, OWNER, recordOf, SESSION, turn } from '../support/assertions.js';
import type { Suite } from '../support/suite.js';

/** Deleted sessions, and sessions that replace them. */
export function deleteCases({ add, clock, canReopen }: Suite): void {
  add('deletes a session completely', async (store) => {
    await deletedSession(store);
    await assertGone(store, 3);
    assert.equal(await store.delete(SESSION), false, 'a second time');
    await assertGone(store, 3);
  });

  add('deletes no other session', async (store) => {
    const others = [
      { ...SESSION, key: 'ben' },
      { ...SESSION, agent: 'billing' },
      { ...SESSION, project: 'other' },
    ];
    for (const id of others) {
      await store.create(id, { metadata: { topic: 'rain' }, messages: turn(1) });
      await store.putSummary(id, 1, { messages: 1, text: 'rain' });
    }
    await deletedSession(store);
    for (const id of others) {
      await assertLoaded(store, id, { version: 1, messages: turn(1), summary: { messages: 1, text: 'rain' } });
      await assertInfo(store, id, { turns: 1, metadata: { topic: 'rain' } });
    }
  });

  add('refuses commits that loaded the session before its deletion', async (store) => {
    await deletedSession(store);
    for (const expected of [0, 1, 2, 4])
      await assert.rejects(store.commit(SESSION, { expected, messages: turn(9) }), VersionConflict, `expected: ${expected}`);
    await assertGone(store, 3);
  });

  add('starts a new session over a deleted one by a turn', async (store) => {
    await deletedSession(store);
    await store.commit(SESSION, { expected: 3, messages: turn(7) });
    await assertLoaded(store, SESSION, { version: 4, messages: turn(7) });
    await assertInfo(store, SESSION, { turns: 1, metadata: {} });
    assert.deepEqual(await store.turns(SESSION, { limit: 10, order: 'desc' }), [{ turn: 1, messages: turn(7) }]);
    await store.commit(SESSION, { expected: 4, messages: turn(8) });
    assert.deepEqual(await store.turns(SESSION, { limit: 1, order: 'asc', after: 1 }), [{ turn: 2, messages: turn(8) }]);
    assert.equal(await store.delete(SESSION), true);
    await assertGone(store, 6);
  });

  add('starts a new session over a deleted one without a turn', async (store) => {
    await deletedSession(store);
    await store.create(SESSION, { metadata: { topic: 'snow' }, messages: [] });
    await assertLoaded(store, SESSION, { version: 3, messages: [] });
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'snow' } });
    await assert.rejects(store.commit(SESSION, { expected: 2, messages: turn(9) }), VersionConflict);
    await store.commit(SESSION, { expected: 3, messages: turn(1) });
    await assertInfo(store, SESSION, { turns: 1, metadata: { topic: 'snow' } });
    await store.delete(SESSION);
    await store.create(SESSION, { metadata: {}, messages: turn(2) });
    await assertLoaded(store, SESSION, { version: 6, messages: turn(2) });
    await assertInfo(store, SESSION, { turns: 1, metadata: {} });
  });

  add('leaves no message behind when a session is deleted during a commit', async (store) => {
    await commitTurns(store, SESSION, 1);
    await Promise.allSettled([
      store.commit(SESSION, { expected: 1, messages: turn(2) }),
      store.delete(SESSION),
      store.commit(SESSION, { expected: 1, messages: turn(3) }),
    ]);
    await assertGone(store, await store.version(SESSION));
  });

  add('keeps idempotency records of a deleted session', async (store) => {
    const key = { project: SESSION.project, route: '/v1/chat/completions', key: 'once' };
    const idempotency = { key, fingerprint: 'f1', result: { text: 'answer' } };
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
    await store.delete(SESSION);
    assert.deepEqual(await recordOf(store.idempotency, key), idempotency);
  });

  if (clock) {
    add('keeps the version of a deleted session for 30 days', async (store) => {
      await deletedSession(store);
      clock.advance(30 * DAY - HOUR);
      await assertGone(store, 3);
      clock.advance(2 * HOUR);
      await assertGone(store, 0);
      await store.commit(SESSION, { expected: 0, messages: turn(1) });
      await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    });

    add('dates a session that replaces a deleted one from its own creation', async (store) => {
      await deletedSession(store);
      const between = { ...OWNER, key: 'between' };
      await commitTurns(store, between, 1);
      clock.advance(HOUR);
      await store.commit(SESSION, { expected: 3, messages: turn(1) });
      assert.equal((await store.info(SESSION))?.createdAt, Math.floor(clock.now()));
      const found = await store.list(OWNER.project, { limit: 10, order: 'asc' });
      assert.deepEqual(
        found.map(({ id }) => id.key),
        ['between', SESSION.key],
      );
    });
  }

  if (canReopen) {
    add('keeps deletions across a restart and recovers no turn of a deleted session', async (store, reopen) => {
      await store.begin({ ...OWNER, key: 'ben' }, { turnId: 'turn_7', input: turn(7) });
      await deletedSession(store);
      const second = await reopen();
      await assertGone(second, 3);
      assert.deepEqual(
        (await second.recover()).map(({ turnId }) => turnId),
        ['turn_7'],
      );
      await assert.rejects(second.commit(SESSION, { expected: 2, messages: turn(3) }), VersionConflict);
      await second.commit(SESSION, { expected: 3, messages: turn(1) });
      await assertLoaded(await reopen(), SESSION, { version: 4, messages: turn(1) });
    });

    add('recovers turns that began after a deletion', async (store, reopen) => {
      await deletedSession(store);
      await store.begin(SESSION, { turnId: 'turn_4', input: turn(4) });
      assert.deepEqual(await (await reopen()).recover(), [{ id: SESSION, turnId: 'turn_4', input: turn(4) }]);
    });
  }
}

/** Creates a session of two turns with metadata and summary, and deletes it: version 3. */
async function deletedSession(store: SessionStore): Promise<void> {
  await store.create(SESSION, { metadata: { topic: 'rain' }, messages: turn(1) });
  await store.commit(SESSION, { expected: 1, messages: turn(2), user: 'anna' });
  await store.putSummary(SESSION, 2, { messages: 2, text: 'rain' });
  await store.begin(SESSION, { turnId: 'turn_3', input: turn(3) });
  assert.equal(await store.delete(SESSION), true);
}

async function assertGone(store: SessionStore, version: number): Promise<void> {
  await assertLoaded(store, SESSION, { version, messages: [] });
  assert.equal(await store.version(SESSION), version);
  assert.equal(await store.info(SESSION), undefined);
  assert.equal(await store.find(SESSION.project, conversationId(SESSION)), undefined);
  assert.deepEqual(await store.turns(SESSION, { limit: 10, order: 'asc' }), []);
  const left = await store.list(SESSION.project, { limit: 100, order: 'asc' });
  assert.ok(!left.some(({ conversation }) => conversation === conversationId(SESSION)), 'a list still shows it');
}
