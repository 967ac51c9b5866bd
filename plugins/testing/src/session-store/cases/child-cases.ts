import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { conversationId, type SessionId } from '@plugboard/kernel/contracts';
import { assertInfo, assertLoaded, commitTurns, OWNER, SESSION, turn } from '../support/assertions.js';
import type { Suite } from '../support/suite.js';

/** With a key that no caller can choose, and of another agent. */
const CHILD = { ...OWNER, agent: 'researcher', key: `${conversationId(SESSION)}\u001fhelper` };

/** Sessions that belong to another (`TurnBegin.parent`). */
export function childCases({ add, canReopen }: Suite): void {
  add('keeps a session that belongs to another out of lists', async (store) => {
    await childTurn(store, CHILD, 0);
    await commitTurns(store, SESSION, 1);
    await childTurn(store, CHILD, 1);
    await assertLoaded(store, CHILD, { version: 2, messages: [...turn(1), ...turn(2)] });
    await assertInfo(store, CHILD, { turns: 2, metadata: {} });
    await assertHidden(store);
  });

  add('deletes with a session those that belong to it', async (store) => {
    const second = { ...CHILD, key: `${CHILD.key}2` };
    const foreign = { ...CHILD, key: 'of another' };
    await commitTurns(store, SESSION, 1);
    await childTurn(store, CHILD, 0);
    await childTurn(store, second, 0);
    await childTurn(store, foreign, 0, { ...SESSION, key: 'another' });
    await store.begin(CHILD, { turnId: 'turn_9', input: turn(9), parent: SESSION });
    assert.equal(await store.delete(SESSION), true);
    for (const id of [CHILD, second]) {
      await assertLoaded(store, id, { version: 2, messages: [] });
      assert.equal(await store.info(id), undefined);
    }
    await assertLoaded(store, foreign, { version: 1, messages: turn(1) });
    await childTurn(store, CHILD, 2);
    await assertLoaded(store, CHILD, { version: 3, messages: turn(3) });
  });

  add('deletes what belongs to a session whose own first turn was not stored', async (store) => {
    await childTurn(store, CHILD, 0);
    assert.equal(await store.delete(SESSION), false);
    assert.equal(await store.info(CHILD), undefined);
  });

  add('forks a session without those that belong to it', async (store) => {
    const copy = { ...SESSION, key: 'copy' };
    await commitTurns(store, SESSION, 1);
    await childTurn(store, CHILD, 0);
    await store.fork(SESSION, copy.key, 1);
    assert.equal(await store.delete(copy), true);
    await assertLoaded(store, CHILD, { version: 1, messages: turn(1) });
  });

  if (canReopen) {
    add('keeps across a restart to which session another belongs', async (store, reopen) => {
      await commitTurns(store, SESSION, 1);
      await childTurn(store, CHILD, 0);
      const second = await reopen();
      await assertHidden(second);
      await second.delete(SESSION);
      assert.equal(await second.info(CHILD), undefined);
    });
  }
}

async function childTurn(store: SessionStore, id: SessionId, expected: number, parent: SessionId = SESSION): Promise<void> {
  const turnId = `turn of ${id.key} ${expected}`;
  await store.begin(id, { turnId, input: [], parent });
  await store.commit(id, { turnId, expected, messages: turn(expected + 1) });
}

/** The child is in no list, and `SESSION` is. */
async function assertHidden(store: SessionStore): Promise<void> {
  for (const order of ['asc', 'desc'] as const) {
    const listed = await store.list(OWNER.project, { limit: 10, order });
    assert.deepEqual(
      listed.map(({ id }) => id),
      [SESSION],
    );
  }
  assert.equal(await store.find(OWNER.project, conversationId(CHILD)), undefined);
}
