import assert from 'node:assert/strict';
import type { Message } from '@plugboard/kernel';
import { VersionConflict } from '@plugboard/kernel/contracts';
import { assertLoaded, commitTurns, SESSION, turn } from '../support/assertions.js';
import { EVERY_FORM, UNUSUAL_TEXTS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Turns: begin, commit, abandon, recover. */
export function turnCases({ add, canReopen }: Suite): void {
  add('loads version 0 and no messages for an unknown session', async (store) => {
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
  });

  add('keeps every kind of message unchanged', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
    await assertLoaded(store, SESSION, { version: 1, messages: EVERY_FORM });
  });

  add('keeps text that is difficult for databases and encodings', async (store) => {
    const messages: Message[] = UNUSUAL_TEXTS.map((content) => ({ role: 'user', content }));
    await store.commit(SESSION, { expected: 0, messages });
    assert.deepEqual((await store.load(SESSION)).messages, messages);
  });

  add('appends turns and counts them', async (store) => {
    await commitTurns(store, SESSION, 3);
    await assertLoaded(store, SESSION, { version: 3, messages: [...turn(1), ...turn(2), ...turn(3)] });
  });

  add('keeps a long turn', async (store) => {
    const messages: Message[] = Array.from({ length: 500 }, (_, i) => ({ role: 'user', content: `${i} ${'x'.repeat(2000)}` }));
    await store.commit(SESSION, { expected: 0, messages });
    assert.deepEqual((await store.load(SESSION)).messages, messages);
  });

  add('refuses a commit to another version and changes nothing', async (store) => {
    await commitTurns(store, SESSION, 2);
    for (const expected of [0, 1, 3]) {
      await assert.rejects(store.commit(SESSION, { expected, messages: turn(9) }), VersionConflict, `expected: ${expected}`);
    }
    await assertLoaded(store, SESSION, { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('refuses a commit to a later version of an unknown session', async (store) => {
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(9) }), VersionConflict);
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
  });

  add('shows nothing of a turn before its commit', async (store) => {
    await commitTurns(store, SESSION, 1);
    await store.begin(SESSION, { turnId: 'turn_2', input: [{ role: 'user', content: 'question 2' }] });
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    await store.commit(SESSION, { turnId: 'turn_2', expected: 1, messages: turn(2) });
    await assertLoaded(store, SESSION, { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('leaves the conversation unchanged when a turn is abandoned', async (store) => {
    await commitTurns(store, SESSION, 1);
    await store.begin(SESSION, { turnId: 'turn_2', input: turn(2) });
    await store.abandon(SESSION, 'turn_2');
    await store.abandon(SESSION, 'turn_2');
    await store.abandon({ ...SESSION, key: 'unknown' }, 'turn_3');
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    await store.commit(SESSION, { expected: 1, messages: turn(3) });
  });

  add('recovers neither ended nor running turns', async (store) => {
    await store.begin(SESSION, { turnId: 'turn_1', input: turn(1) });
    await store.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1) });
    await store.begin(SESSION, { turnId: 'turn_2', input: turn(2) });
    await store.abandon(SESSION, 'turn_2');
    assert.deepEqual(await store.recover(), []);
  });

  add('returns the version', async (store) => {
    assert.equal(await store.version(SESSION), 0);
    await commitTurns(store, SESSION, 2);
    assert.equal(await store.version(SESSION), 2);
  });

  add('has another generation, if any, after each change of a session that is not a turn', async (store) => {
    const other = { ...SESSION, key: 'ben' };
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      create: () => store.create(SESSION, { metadata: {}, messages: turn(1) }),
      append: () => store.commit(SESSION, { expected: 1, messages: turn(2) }),
      fork: () => store.fork(SESSION, other.key, 1),
      delete: () => store.delete(other),
    };
    for (const [name, change] of Object.entries(changes)) {
      const { generation } = store;
      await change();
      assert.equal(store.generation === generation, generation === undefined, name);
    }
    const { generation } = store;
    await store.begin(SESSION, { turnId: 'turn_3', input: turn(3) });
    await store.commit(SESSION, { turnId: 'turn_3', expected: 2, messages: turn(3) });
    assert.equal(store.generation, generation, 'a turn');
  });

  add('accepts exactly one of several concurrent commits', async (store) => {
    const attempts = Array.from({ length: 8 }, (_, i) => store.commit(SESSION, { expected: 0, messages: turn(i) }));
    const results = await Promise.allSettled(attempts);
    const winner = results.findIndex((result) => result.status === 'fulfilled');
    for (const [i, result] of results.entries()) {
      if (i !== winner)
        assert.ok(result.status === 'rejected' && result.reason instanceof VersionConflict, `attempt ${i}: ${result.status}`);
    }
    await assertLoaded(store, SESSION, { version: 1, messages: turn(winner) });
  });

  if (canReopen) {
    add('keeps committed turns across a restart', async (store, reopen) => {
      await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
      await commitTurns(store, { ...SESSION, key: 'ben' }, 2);
      const second = await reopen();
      assert.equal(await second.version(SESSION), 1);
      await assertLoaded(second, SESSION, { version: 1, messages: EVERY_FORM });
      assert.equal(await second.version({ ...SESSION, key: 'ben' }), 2);
      await second.commit(SESSION, { expected: 1, messages: turn(2) });
      await assertLoaded(await reopen(), SESSION, { version: 2, messages: [...EVERY_FORM, ...turn(2)] });
    });

    add('recovers interrupted turns with their input, each once', async (store, reopen) => {
      const elsewhere = { project: 'other', agent: 'billing', key: 'new' };
      await commitTurns(store, SESSION, 1);
      await store.begin(SESSION, { turnId: 'turn_2', input: EVERY_FORM });
      await store.begin(elsewhere, { turnId: 'turn_3', input: turn(3) });
      for (const turnId of ['turn_4', 'turn_5']) await store.begin(SESSION, { turnId, input: turn(4) });
      await store.commit(SESSION, { turnId: 'turn_4', expected: 1, messages: turn(4) });
      await store.abandon(SESSION, 'turn_5');

      const second = await reopen();
      await second.begin(SESSION, { turnId: 'turn_6', input: turn(6) });
      const interrupted = [...(await second.recover())].sort((a, b) => a.turnId.localeCompare(b.turnId));
      assert.deepEqual(interrupted, [
        { id: SESSION, turnId: 'turn_2', input: EVERY_FORM },
        { id: elsewhere, turnId: 'turn_3', input: turn(3) },
      ]);
      assert.deepEqual(await second.recover(), [], 'recovered twice');
      for (const { id, turnId } of interrupted) await second.abandon(id, turnId);
      await assertLoaded(second, SESSION, { version: 2, messages: [...turn(1), ...turn(4)] });
      assert.equal(await second.version(elsewhere), 0);
      await second.commit(SESSION, { turnId: 'turn_6', expected: 2, messages: turn(6) });
      assert.deepEqual(await (await reopen()).recover(), [], 'recovered after another restart');
    });
  }
}
