import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { type ApprovalChange, type ApprovalPage, type SessionId, VersionConflict } from '@plugboard/kernel/contracts';
import { assertAnnounced, SESSION, turn } from '../support/assertions.js';
import type { Suite } from '../support/suite.js';

const OTHER = { ...SESSION, key: 'ben', agent: 'billing' };
const ABROAD = { ...SESSION, project: 'other' };
const FIRST: ApprovalPage = { limit: 10, order: 'asc' };

/** Requests for a person's approval. */
export function approvalCases({ canReopen, ...suite }: Suite): void {
  const add: Suite['add'] = (name, check) => suite.add(name, check, 'ApprovalStore');
  add('stores approvals with their turn', async (store) => {
    await ask(store, SESSION, ['mcpr_1', 'mcpr_2']);
    const found = await get(store, 'mcpr_1');
    const { text, ...listed } = { ...asking('mcpr_1'), session: SESSION };
    assert.deepEqual(found, { ...listed, text });
    const shown = await store.approvals.find(SESSION.project, 'mcpr_1');
    assert.deepEqual(shown && { ...shown, session: { ...shown.session } }, listed);
    assert.equal(await store.approvals.find(SESSION.project, 'mcpr_3'), undefined);
    const all = await store.approvals.get(SESSION.project, ['mcpr_3', 'mcpr_2', 'mcpr_1']);
    assert.deepEqual(
      all.map(({ id }) => id),
      ['mcpr_2', 'mcpr_1'],
    );
  });

  add('says how large an approval is before it is read', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    const bytes = Buffer.byteLength((await get(store, 'mcpr_1'))?.text ?? '');
    await assertAnnounced(bytes, async (reserve) => (await store.approvals.get(SESSION.project, ['mcpr_1'], reserve))[0]);
  });

  add('stores no approval of a turn that is refused', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    const late = { ...asking('mcpr_2'), text: 'late' };
    await assert.rejects(store.commit(SESSION, { expected: 0, messages: turn(2), approvals: [late] }), VersionConflict);
    assert.equal(await get(store, 'mcpr_2'), undefined);
    assert.deepEqual(await waiting(store), ['mcpr_1']);
  });

  add('changes an approval with a later turn', async (store) => {
    await ask(store, SESSION, ['mcpr_1', 'mcpr_2']);
    const settled = { ...asking('mcpr_1'), waits: false, text: 'settled' };
    await store.commit(SESSION, { expected: 1, messages: turn(2), approvals: [settled] });
    assert.equal((await get(store, 'mcpr_1'))?.text, 'settled');
    assert.deepEqual(await waiting(store), ['mcpr_2']);
  });

  add('replaces an approval that nobody has changed since it was read, and only that', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    const [read] = await store.approvals.get(SESSION.project, ['mcpr_1']);
    assert.ok(read);
    assert.equal(await store.approvals.replace(read, { waits: false, text: 'approved' }), true);
    assert.equal(await store.approvals.replace(read, { waits: false, text: 'denied' }), false);
    assert.equal((await get(store, 'mcpr_1'))?.text, 'approved');
    assert.deepEqual(await waiting(store), []);
  });

  add('lets one of several concurrent replacements win', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    const [read] = await store.approvals.get(SESSION.project, ['mcpr_1']);
    assert.ok(read);
    const texts = Array.from({ length: 8 }, (_, n) => `decision ${n}`);
    const won = await Promise.all(texts.map((text) => store.approvals.replace(read, { waits: false, text })));
    assert.equal(won.filter(Boolean).length, 1);
    assert.equal((await get(store, 'mcpr_1'))?.text, texts[won.indexOf(true)]);
  });

  add('lists what waits in a project, in the order of the requests', async (store) => {
    await ask(store, SESSION, ['mcpr_b', 'mcpr_a']);
    await ask(store, ABROAD, ['mcpr_x']);
    await ask(store, OTHER, ['mcpr_c']);
    assert.deepEqual(await waiting(store), ['mcpr_b', 'mcpr_a', 'mcpr_c']);
    assert.deepEqual(await waiting(store, { limit: 10, order: 'desc' }), ['mcpr_c', 'mcpr_a', 'mcpr_b']);
    assert.deepEqual(await waiting(store, { limit: 1, order: 'asc' }), ['mcpr_b']);
    assert.deepEqual(await waiting(store, { limit: 1, order: 'asc', after: 'mcpr_b' }), ['mcpr_a']);
    assert.deepEqual(await waiting(store, { limit: 10, order: 'desc', after: 'mcpr_a' }), ['mcpr_b']);
    assert.deepEqual(await waiting(store, { ...FIRST, after: 'mcpr_x' }), [], 'of another project');
    assert.deepEqual(await waiting(store, { ...FIRST, agents: [OTHER.agent] }), ['mcpr_c']);
    assert.deepEqual(await waiting(store, { ...FIRST, agents: [] }), []);
  });

  add(
    'S-69 lists what waits without its text, by caller and time, and says how large it is before it reads it',
    async (store) => {
      await ask(store, SESSION, ['mcpr_1', 'mcpr_2'], { caller: 'anna', expiresAt: 10 });
      await ask(store, OTHER, ['mcpr_3', 'mcpr_4'], { caller: 'ben', expiresAt: 20 });
      const { text, ...listed } = { ...asking('mcpr_1'), caller: 'anna', expiresAt: 10, session: SESSION };
      const sizes: number[] = [];
      const page = { ...FIRST, caller: 'anna', reserve: (bytes: number) => void sizes.push(bytes) };
      const [first] = await store.approvals.waiting(SESSION.project, page);
      assert.deepEqual(first && { ...first, session: { ...first.session } }, listed);
      assert.equal(sizes.length, 2);
      assert.ok(sizes.every((size) => size >= Buffer.byteLength(listed.listed) && size < text.length));
      assert.deepEqual(await waiting(store, { ...FIRST, caller: 'ben', after: 'mcpr_1' }), ['mcpr_3', 'mcpr_4']);
      assert.deepEqual(await waiting(store, { ...FIRST, order: 'desc', caller: 'anna', after: 'mcpr_3' }), ['mcpr_2', 'mcpr_1']);
      assert.deepEqual(await waiting(store, { ...FIRST, caller: '' }), []);
      assert.deepEqual(await waiting(store, { ...FIRST, expiresAfter: 10 }), ['mcpr_3', 'mcpr_4']);
      assert.deepEqual(await waiting(store, { ...FIRST, expiresAfter: 10, caller: 'anna' }), []);
      const refuses = { ...FIRST, reserve: () => assert.fail('there is no memory') };
      await assert.rejects(store.approvals.waiting(SESSION.project, refuses), /there is no memory/);
    },
  );

  add('isolates the approvals of projects', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    await ask(store, ABROAD, ['mcpr_1']);
    const mine = await get(store, 'mcpr_1');
    const [theirs] = await store.approvals.get(ABROAD.project, ['mcpr_1']);
    assert.ok(mine && theirs);
    await store.approvals.replace(theirs, { waits: false, text: 'theirs' });
    assert.deepEqual(await get(store, 'mcpr_1'), mine);
  });

  add('deletes the approvals of a deleted session, and copies none to a fork', async (store) => {
    await ask(store, SESSION, ['mcpr_1']);
    await ask(store, OTHER, ['mcpr_2']);
    await store.fork(SESSION, 'copy', 1);
    assert.deepEqual(await waiting(store), ['mcpr_1', 'mcpr_2']);
    const [read] = await store.approvals.get(SESSION.project, ['mcpr_1']);
    await store.delete(SESSION);
    assert.deepEqual(await waiting(store), ['mcpr_2']);
    assert.equal(await get(store, 'mcpr_1'), undefined);
    assert.equal(read && (await store.approvals.replace(read, { waits: false, text: 'late' })), false);
  });

  if (canReopen) {
    add('keeps approvals across a restart', async (store, reopen) => {
      await ask(store, SESSION, ['mcpr_1', 'mcpr_2']);
      const [read] = await store.approvals.get(SESSION.project, ['mcpr_1']);
      if (read) await store.approvals.replace(read, { waits: false, text: 'approved' });
      const second = await reopen();
      assert.equal((await get(second, 'mcpr_1'))?.text, 'approved');
      assert.deepEqual(await waiting(second), ['mcpr_2']);
    });
  }
}

/** A request for approval: what lists read of it is small. */
function asking(id: string): ApprovalChange {
  const unusual = '\u0000 \u{1f600} "b"';
  return {
    id,
    waits: true,
    caller: 'anna',
    expiresAt: 1_000,
    listed: `lists ${id} ${unusual}`,
    text: `asks ${id} ${unusual.repeat(20)}`,
  };
}

/** Commits the first turn of a session with approvals. */
function ask(store: SessionStore, id: SessionId, ids: readonly string[], like: Partial<ApprovalChange> = {}): Promise<void> {
  return store.commit(id, { expected: 0, messages: turn(1), approvals: ids.map((name) => ({ ...asking(name), ...like })) });
}

async function get(store: SessionStore, id: string) {
  const [found] = await store.approvals.get(SESSION.project, [id]);
  return found && { ...found, session: { ...found.session } };
}

async function waiting(store: SessionStore, page = FIRST): Promise<readonly string[]> {
  return (await store.approvals.waiting(SESSION.project, page)).map(({ id }) => id);
}
