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

  add('lists the sessions of a project in the order of creation', async (store) => {
    const ids = named(['d', 'a', 'c', 'b', 'e']);
    await make(store, [...ids, { ...OWNER, project: 'other', key: 'x' }]);
    await store.commit(of('a'), { expected: 0, messages: turn(1), user: 'anna' });
    const found = await store.list(PROJECT, { limit: 10, order: 'asc' });
    assert.deepEqual(keysOf(found), ['d', 'a', 'c', 'b', 'e']);
    for (const info of found) assert.deepEqual(info, await store.info(info.id));
    assert.deepEqual(keysOf(await store.list(PROJECT, { limit: 10, order: 'desc' })), ['e', 'b', 'c', 'a', 'd']);
    assert.deepEqual(keysOf(await store.list('other', { limit: 10, order: 'desc' })), ['x']);
    assert.deepEqual(await store.list('unknown', { limit: 10, order: 'desc' }), []);
  });

  add('lists each session on exactly one page, even if sessions change meanwhile', async (store) => {
    await make(store, named(['a', 'b', 'c', 'd', 'e', 'f', 'g']));
    for (const order of ['asc', 'desc'] as const) {
      const pages = await walk(store, { limit: 2, order }, async (last) => {
        clock?.advance(HOUR);
        await store.setMetadata(last, { seen: order });
        await store.commit(last, { expected: await store.version(last), messages: turn(1), user: order });
      });
      const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
      assert.deepEqual(pages.flat(), order === 'asc' ? keys : keys.reverse());
      assert.deepEqual(
        pages.map((page) => page.length),
        [2, 2, 2, 1],
      );
    }
  });

  add('filters lists by user and by agents', async (store) => {
    const ids = ['helper', 'billing', 'search'].flatMap((agent) => named(['a', 'b', 'c'], agent));
    await make(store, ids);
    for (const id of ids.filter(({ key }) => key !== 'c')) {
      const user = id.key === 'a' ? 'anna' : 'ben';
      await store.commit(id, { expected: 0, messages: turn(1), user });
    }
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
    const after = conversationId({ project: PROJECT, agent: 'helper', key: 'a' });
    assert.deepEqual(await list({ ...only, after }), ['helper b', 'search b'], 'after a session of another user');
    await store.commit({ project: PROJECT, agent: 'helper', key: 'b' }, { expected: 1, messages: turn(2), user: 'anna' });
    assert.deepEqual(await list(only), ['search b'], 'the latest turn names the user');
  });

  add('lists nothing after an unknown session', async (store) => {
    await make(store, named(['a', 'b', 'c']));
    const elsewhere = { ...OWNER, project: 'other', key: 'a' };
    const another = { ...OWNER, agent: 'billing', key: 'a' };
    await make(store, [elsewhere, another]);
    await store.delete(of('b'));
    for (const order of ['asc', 'desc'] as const) {
      for (const after of [of('b'), of('unknown'), elsewhere].map(conversationId))
        assert.deepEqual(await store.list(PROJECT, { limit: 10, order, after }), []);
      const agents = [OWNER.agent];
      assert.deepEqual(await store.list(PROJECT, { limit: 10, order, after: conversationId(another), agents }), []);
    }
    assert.deepEqual(keysOf(await store.list(PROJECT, { limit: 10, order: 'asc', after: conversationId(of('c')) })), ['a']);
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
        assert.deepEqual(await agentsOf({ after: value }), [], `after ${value}`);
        assert.deepEqual(await agentsOf({ after: value, user: value }), [], `after ${value}, of that user`);
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

/** Returns the keys of each page. */
async function walk(store: SessionStore, page: SessionPage, between?: (last: SessionId) => Promise<void>) {
  const pages: (readonly string[])[] = [];
  let after: string | undefined;
  for (;;) {
    const found = await store.list(PROJECT, { ...page, after });
    const last = found.at(-1);
    if (!last) return pages;
    pages.push(keysOf(found));
    after = last.conversation;
    await between?.(last.id);
  }
}
