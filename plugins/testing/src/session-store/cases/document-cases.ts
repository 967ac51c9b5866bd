import assert from 'node:assert/strict';
import { assertAnnounced, DAY, SESSION, turn } from '../support/assertions.js';
import type { Suite } from '../support/suite.js';

const OTHER = { ...SESSION, key: 'ben' };
const ABROAD = { ...SESSION, project: 'other' };

/** Texts that are kept with sessions. */
export function documentCases({ add, clock, canReopen }: Suite): void {
  add('returns a document with its session', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await store.documents.put(SESSION, 'resp_1', '{"text":"a \\u0000 \u{1f600} "b""}');
    await store.documents.put(SESSION, 'resp_2', '');
    const found = await store.documents.get(SESSION.project, 'resp_1');
    assert.deepEqual(found && { ...found, id: { ...found.id } }, { id: SESSION, text: '{"text":"a \\u0000 \u{1f600} "b""}' });
    assert.equal((await store.documents.get(SESSION.project, 'resp_2'))?.text, '');
    assert.equal(await store.documents.get(SESSION.project, 'resp_3'), undefined);
  });

  add('says how large a document is before it is read', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await store.documents.put(SESSION, 'resp_1', 'ü'.repeat(1_000));
    await assertAnnounced(2_000, (reserve) => store.documents.get(SESSION.project, 'resp_1', reserve));
  });

  add('isolates the documents of projects', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: [] });
    await store.create(ABROAD, { metadata: {}, messages: [] });
    await store.documents.put(SESSION, 'resp_1', 'mine');
    assert.equal(await store.documents.get(ABROAD.project, 'resp_1'), undefined);
    assert.equal(await store.documents.delete(ABROAD.project, 'resp_1'), undefined);
    await store.documents.put(ABROAD, 'resp_1', 'theirs');
    assert.equal((await store.documents.get(SESSION.project, 'resp_1'))?.text, 'mine');
    assert.equal((await store.documents.get(ABROAD.project, 'resp_1'))?.text, 'theirs');
  });

  add('replaces a document of the same name', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: [] });
    await store.create(OTHER, { metadata: {}, messages: [] });
    await store.documents.put(SESSION, 'resp_1', 'first');
    await store.documents.put(SESSION, 'resp_1', 'second');
    assert.equal((await store.documents.get(SESSION.project, 'resp_1'))?.text, 'second');
    await store.documents.put(OTHER, 'resp_1', 'third');
    const found = await store.documents.get(SESSION.project, 'resp_1');
    assert.deepEqual([found?.id.key, found?.text], [OTHER.key, 'third']);
    await store.delete(SESSION);
    assert.equal((await store.documents.get(SESSION.project, 'resp_1'))?.text, 'third');
  });

  add('stores no document without a session', async (store) => {
    await store.documents.put(SESSION, 'resp_1', 'lost');
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    assert.equal(await store.documents.get(SESSION.project, 'resp_1'), undefined);
  });

  add('deletes a document without its session', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await store.documents.put(SESSION, 'resp_1', 'one');
    await store.documents.put(SESSION, 'resp_2', 'two');
    await store.documents.put(SESSION, 'note_1', 'of another kind');
    await store.commit(OTHER, { expected: 0, messages: turn(1) });
    await store.documents.put(OTHER, 'resp_3', 'three');
    assert.equal(await store.documents.delete(SESSION.project, 'resp_1'), 1, 'one is left of its kind');
    assert.equal(await store.documents.delete(SESSION.project, 'resp_1'), undefined, 'it is gone');
    assert.equal(await store.documents.get(SESSION.project, 'resp_1'), undefined);
    assert.equal((await store.documents.get(SESSION.project, 'resp_2'))?.text, 'two');
    assert.equal(await store.documents.delete(SESSION.project, 'resp_2'), 0, 'none is left of its kind');
    assert.equal((await store.info(SESSION))?.turns, 1);
  });

  add('deletes the documents of a deleted session', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await store.create(OTHER, { metadata: {}, messages: [] });
    await store.documents.put(SESSION, 'resp_1', 'one');
    await store.documents.put(OTHER, 'resp_2', 'two');
    await store.delete(SESSION);
    assert.equal(await store.documents.get(SESSION.project, 'resp_1'), undefined);
    await store.commit(SESSION, { expected: 2, messages: turn(2) });
    assert.equal(await store.documents.get(SESSION.project, 'resp_1'), undefined, 'in a session that begins anew');
    assert.equal((await store.documents.get(SESSION.project, 'resp_2'))?.text, 'two');
  });

  add('does not copy documents to a fork', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await store.documents.put(SESSION, 'resp_1', 'one');
    await store.fork(SESSION, OTHER.key, 1);
    await store.delete(SESSION);
    assert.equal(await store.documents.get(SESSION.project, 'resp_1'), undefined);
  });

  if (clock) {
    add('expires a document with its session', async (store) => {
      await store.commit(SESSION, { expected: 0, messages: turn(1) });
      await store.documents.put(SESSION, 'resp_1', 'one');
      clock.advance(400 * DAY);
      assert.equal(
        (await store.documents.get(SESSION.project, 'resp_1')) === undefined,
        (await store.info(SESSION)) === undefined,
      );
    });
  }

  if (canReopen) {
    add('returns documents after a restart', async (store, reopen) => {
      await store.commit(SESSION, { expected: 0, messages: turn(1) });
      await store.documents.put(SESSION, 'resp_1', 'one');
      assert.equal((await (await reopen()).documents.get(SESSION.project, 'resp_1'))?.text, 'one');
    });
  }
}
