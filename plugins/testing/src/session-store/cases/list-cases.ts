import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { conversationId, type SessionId, type SessionInfo, type SessionPage } from '@plugboard/kernel/contracts';
import { HOUR, OWNER, turn } from '../support/assertions.js';
import { INJECTIONS, UNUSUAL_KEYS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

const PROJECT = OWNER.project;

/** Lists of sessions. */
export function listCases({ add, clock }: Suite): void {
  /** Creates sessions one by one, some in the same millisecond. */
  const make = async (store: SessionStore, ids: readonly SessionId[]) => {
    for (const [n, id] of ids.entries()) {
      await store.create(id, { metadata: {}, messages: [] });
      if (n % 3 === 2) clock?.advance(1);
    }
  };

  add('lists the sessions of a project in the order of their last activity', async (store) => {
    const ids = named(['d', 'a', 'c', 'b', 'e']);
    await make(store, [...ids, { ...OWNER, project: 'other', key: 'x' }]);
    const listed = async (order: 'asc' | 'desc') => keysOf(await store.list(PROJECT, { limit: 10, order }));
    assert.deepEqual(await listed('asc'), ['d', 'a', 'c', 'b', 'e'], 'they were created in this order');
    assert.deepEqual(await listed('desc'), ['e', 'b', 'c', 'a', 'd']);
    for (const info of await store.list(PROJECT, { limit: 10, order: 'asc' })) assert.deepEqual(info, await store.info(info.id));
    assert.deepEqual(keysOf(await store.list('other', { limit: 10, order: 'desc' })), ['x']);
    assert.deepEqual(await store.list('unknown', { limit: 10, order: 'desc' }), []);
    if (!clock) return;
    clock.advance(1);
    await store.commit(of('a'), { expected: 0, messages: turn(1), user: 'anna' });
    await store.setMetadata(of('d'), { seen: 'yes' });
    assert.deepEqual(await listed('desc'), ['a', 'e', 'b', 'c', 'd'], 'a turn counts, other changes do not');
  });

  add('lists each session on exactly one page, even if sessions change meanwhile', async (store) => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    await make(store, named(keys));
    for (const order of ['asc', 'desc'] as const) {
      const pages = await walk(store, { limit: 2, order }, async (last) => {
        clock?.advance(HOUR);
        await store.setMetadata(last, { seen: order });
        // the oldest first, a turn would bring the session back at the end
        if (order === 'desc' && clock) await store.commit(last, { expected: 0, messages: turn(1), user: order });
      });
      assert.deepEqual(pages.flat(), order === 'asc' ? keys : keys.toReversed());
      assert.deepEqual(
        pages.map((page) => page.length),
        [2, 2, 2, 1],
      );
    }
  });

  add('filters lists by user and by agents', async (store) => {
    const ids = ['helper', 'billing', 'search'].flatMap((agent) => named(['a', 'b', 'c'], agent));
    await make(store, ids);
    const users: Readonly<Record<string, string>> = { a: 'anna', b: 'ben' };
    for (const id of ids) await store.commit(id, { expected: 0, messages: turn(1), user: users[id.key] });
    const list = async (page: Partial<SessionPage>) =>
      (await store.list(PROJECT, { limit: 10, order: 'asc', ...page })).map(({ id }) => `${id.agent} ${id.key}`);
    assert.deepEqual(await list({ user: 'anna' }), ['helper a', 'billing a', 'search a']);
    assert.deepEqual(await list({ user: 'anna', order: 'desc', limit: 2 }), ['search a', 'billing a']);
    assert.deepEqual(await list({ user: 'unknown' }), []);
    assert.deepEqual(await list({ agents: ['search'] }), ['search a', 'search b', 'search c']);
    assert.deepEqual(await list({ agents: ['search', 'helper', 'unknown'], user: 'ben' }), ['helper b', 'search b']);
    assert.deepEqual(await list({ agents: [] }), []);
    assert.deepEqual(await list({ agents: ['unknown'] }), []);

    const only = { user: 'ben', agents: ['helper', 'search'] };
    assert.deepEqual(await walk(store, { limit: 1, order: 'desc', ...only }), [['b'], ['b']]);
    const after = placeOf(await store.info({ project: PROJECT, agent: 'helper', key: 'a' }));
    assert.deepEqual(await list({ ...only, after }), ['helper b', 'search b'], 'after a session of another user');
    await store.commit({ project: PROJECT, agent: 'helper', key: 'b' }, { expected: 1, messages: turn(2), user: 'anna' });
    assert.deepEqual(await list(only), ['search b'], 'the latest turn names the user');
  });

  add('continues a list where a session was that is gone', async (store) => {
    for (const id of named(['a', 'b', 'c'])) {
      await store.create(id, { metadata: {}, messages: [] });
      clock?.advance(10);
    }
    if (!clock) return;
    const gone = placeOf(await store.info(of('b')));
    await store.delete(of('b'));
    const elsewhere = { ...gone, conversation: conversationId({ ...OWNER, project: 'other', key: 'b' }) };
    for (const after of [gone, elsewhere]) {
      assert.deepEqual(keysOf(await store.list(PROJECT, { limit: 10, order: 'asc', after })), ['c']);
      assert.deepEqual(keysOf(await store.list(PROJECT, { limit: 10, order: 'desc', after })), ['a']);
    }
  });

  add('S-18 treats every filter value as data', async (store) => {
    const values = [...INJECTIONS, ...UNUSUAL_KEYS];
    for (const value of values) {
      await store.commit({ project: PROJECT, agent: value, key: 'k' }, { expected: 0, messages: turn(1), user: value });
      await store.commit({ project: value, agent: 'helper', key: 'k' }, { expected: 0, messages: turn(1), user: 'anna' });
    }
    for (const order of ['asc', 'desc'] as const) {
      for (const value of values) {
        const agentsOf = async (page: Partial<SessionPage>) =>
          (await store.list(PROJECT, { limit: 1000, order, ...page })).map(({ id }) => id.agent);
        assert.deepEqual(await agentsOf({ user: value }), [value], `the user ${value}`);
        assert.deepEqual(await agentsOf({ agents: [value] }), [value], `the agent ${value}`);
        assert.deepEqual(await agentsOf({ agents: [value], user: value }), [value], `both ${value}`);
        const after = { conversation: value, updatedAt: order === 'asc' ? Number.MAX_SAFE_INTEGER : 0 };
        assert.deepEqual(await agentsOf({ after }), [], `after ${value}`);
        assert.deepEqual(await agentsOf({ after, user: value }), [], `after ${value}, of that user`);
        const own = await store.list(value, { limit: 1000, order });
        assert.deepEqual(
          own.map(({ id }) => id.project),
          [value],
          `the project ${value}`,
        );
        assert.equal(await store.find(PROJECT, value), undefined, `the opaque id ${value}`);
      }
    }
    assert.equal((await store.list(PROJECT, { limit: 1000, order: 'asc' })).length, values.length);
  });
}

function of(key: string): SessionId {
  return { ...OWNER, key };
}

function named(keys: readonly string[], agent = OWNER.agent): readonly SessionId[] {
  return keys.map((key) => ({ project: PROJECT, agent, key }));
}

function keysOf(found: readonly SessionInfo[]): readonly string[] {
  return found.map(({ id }) => id.key);
}

/** A session as the end of a page. */
function placeOf(info: SessionInfo | undefined): NonNullable<SessionPage['after']> {
  assert.ok(info);
  return { conversation: info.conversation, updatedAt: info.updatedAt };
}

/** Returns the keys of each page. */
async function walk(store: SessionStore, page: SessionPage, between?: (last: SessionId) => Promise<void>) {
  const pages: (readonly string[])[] = [];
  let after: SessionPage['after'];
  for (;;) {
    const found = await store.list(PROJECT, { ...page, after });
    const last = found.at(-1);
    if (!last) return pages;
    pages.push(keysOf(found));
    after = placeOf(last);
    await between?.(last.id);
  }
}
