/**
 * The work of a store grows with what it reads: twice as many sessions, documents, approvals and
 * keys take at most 2.6 times as long to list page by page, to find or to change. The plain store
 * of the kit's own tests is left out: it is written to be short, and its faulty variants change
 * what an index would need.
 */
import { join } from 'node:path';
import { type SessionStore, SessionStores } from '@plugboard/kernel';
import type { SessionId, SessionInfo } from '@plugboard/kernel/contracts';
import { testContext } from '@plugboard/testing';
import t, { type Test } from 'tap';
import memory from '../../plugins/store-memory/src/index.js';
import sqlite from '../../plugins/store-sqlite/src/index.js';
import { faultOfDoubling } from './doubling.js';
import { list } from './shapes.js';

/** Of the smaller size. */
const SIZE = 1_000;
const PAGE = 20;

const name = (at: number) => `name-${String(at).padStart(6, '0')}`;
const idOf = (at: number): SessionId => ({ project: 'p', agent: 'helper', key: name(at) });

/** Stores sessions with a document and an approval each, and as many keys. */
async function fill(store: SessionStore, count: number): Promise<void> {
  await Promise.all(
    list(count, async (at) => {
      const approval = { id: name(at), waits: true, caller: 'anna', expiresAt: 1, listed: '{}', text: '{}' };
      await store.commit(idOf(at), { expected: 0, messages: [{ role: 'user', content: 'Hi' }], approvals: [approval] });
      await store.documents.put(idOf(at), name(at), 'text');
    }),
  );
  await store.state.change(list(count, (at) => ({ entry: 'e', key: name(at), text: '1' })));
}

/** Reads page after page. @returns the number of entries. */
async function readAll<T>(read: (last: T | undefined) => Promise<readonly T[]>): Promise<number> {
  let count = 0;
  for (let page = await read(undefined); page.length > 0; page = await read(page.at(-1))) count += page.length;
  return count;
}

/** What is done with a store of so many sessions. Each returns how many entries it found. */
const WORK: Readonly<Record<string, (store: SessionStore, count: number) => Promise<number>>> = {
  list: (store) => readAll<SessionInfo>((after) => store.list('p', { limit: PAGE, order: 'desc', after })),
  'list of an agent': (store) =>
    readAll<SessionInfo>((after) => store.list('p', { limit: PAGE, order: 'asc', after, agents: ['helper'] })),
  'approvals.waiting': (store) =>
    readAll<{ readonly id: string }>((last) => store.approvals.waiting('p', { limit: PAGE, order: 'asc', after: last?.id })),
  'approvals.waiting of a caller': (store) =>
    readAll<{ readonly id: string }>((last) =>
      store.approvals.waiting('p', { limit: PAGE, order: 'desc', after: last?.id, caller: 'anna', expiresAfter: 0 }),
    ),
  'state.list': (store) =>
    readAll<{ readonly key: string }>((last) => store.state.list('e', { prefix: 'name', after: last?.key, limit: PAGE })),
  find: (store, count) => each(count, async (at) => store.approvals.find('p', name(at))),
  'approvals.get': (store, count) => each(count, async (at) => (await store.approvals.get('p', [name(at)]))[0]),
  'approvals.get of all': async (store, count) => (await store.approvals.get('p', list(count, name))).length,
  'state.change': async (store, count) => {
    const puts = list(count, (at) => ({ entry: 'new', key: name(at), text: '1' }));
    await store.state.change([...puts, ...puts.map((put) => ({ ...put, text: undefined }))]);
    return count;
  },
  'documents.get': (store, count) => each(count, async (at) => store.documents.get('p', name(at))),
  info: (store, count) => each(count, async (at) => store.info(idOf(at))),
};

async function each(count: number, find: (at: number) => Promise<unknown>): Promise<number> {
  let found = 0;
  for (let at = 0; at < count; at++) if ((await find(at)) !== undefined) found++;
  return found;
}

const LIMITS = { maxSessions: 1e6, maxSessionsPerProject: 1e6, maxBytes: '1gb', maxBytesPerProject: '1gb' };

/** Opens the store of a plugin. */
async function opened(t: Test, plugin: typeof memory | typeof sqlite, config: object): Promise<SessionStore> {
  const { lifecycle, contributed } = testContext(plugin as typeof memory, { config });
  const { signal } = new AbortController();
  await lifecycle.start?.(signal);
  t.teardown(() => lifecycle.stop?.(signal));
  return contributed(SessionStores);
}

for (const [kind, open] of [
  ['memory', (t: Test) => opened(t, memory, LIMITS)],
  ['sqlite', (t: Test) => opened(t, sqlite, { path: join(t.testdir(), 'sessions.db') })],
] as const) {
  t.test(`${kind}: pages and look-ups take time with what they find`, async (t) => {
    const stores = new Map<number, SessionStore>();
    for (const size of [SIZE, 2 * SIZE]) {
      const store = await open(t);
      stores.set(size, store);
      await fill(store, size);
    }
    for (const [what, work] of Object.entries(WORK)) {
      const run = (n: number) => async () => {
        const found = await work(stores.get(n) as SessionStore, n);
        if (found !== n) throw new RangeError(`${what} found ${found} of ${n}`);
      };
      t.equal(await faultOfDoubling(run, SIZE), undefined, what);
    }
  });
}
