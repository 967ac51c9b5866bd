import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { ProjectQuotaExceeded, type SessionId } from '@plugboard/kernel/contracts';
import { OWNER, turn } from '../support/assertions.js';
import type { OpenStore, Suite } from '../support/suite.js';

/** Limits of what one project stores. @experimental */
export interface StoreQuotas {
  readonly maxSessions: number;
  /** Size of messages as JSON. */
  readonly maxBytes: number;
}

const UNLIMITED: StoreQuotas = { maxSessions: 1_000_000, maxBytes: 1024 ** 4 };
const FOREIGN: SessionId = { project: 'other', agent: OWNER.agent, key: 'foreign' };
const LARGE = 20_000;

/** Limits of projects. A store refuses what exceeds them, or evicts sessions of the project. */
export function quotaCases({ addOwn }: Suite, open: OpenStore<StoreQuotas>): void {
  const SOURCE = 'ConversationStore 6';

  addOwn('S-39 limits the number of sessions of a project', SOURCE, open({ ...UNLIMITED, maxSessions: 3 }), async (store) => {
    await store.create(FOREIGN, { metadata: {}, messages: turn(1) });
    for (const key of ['a', 'b', 'c']) await store.create(session(key), { metadata: {}, messages: turn(1) });
    const attempts = [
      () => store.create(session('d'), { metadata: {}, messages: [] }),
      () => store.fork(session('c'), 'd', 1),
      async () => store.commit(session('d'), { expected: await store.version(session('d')), messages: turn(1) }),
      () => beginAndCommit(store, session('d')),
    ];
    for (const attempt of attempts) {
      const isRefused = await quotaRefused(attempt());
      const keys = (await store.list(OWNER.project, { limit: 10, order: 'asc' })).map(({ id }) => id.key);
      assert.equal(keys.length, 3, `the project has the sessions ${keys.join(', ')}`);
      assert.equal(keys.includes('d'), !isRefused, 'a write was neither refused nor done');
      await store.delete(session('d'));
      for (const key of ['a', 'b', 'c']) await restore(store, session(key));
    }
    assert.equal((await store.load(FOREIGN)).messages.length, 2, 'another project lost a session');
    await beginAndCommit(store, session('c')); // it exists, so its turns go on
    await store.delete(session('a'));
    await store.create(session('e'), { metadata: {}, messages: turn(1) });
    assert.ok(await store.info(session('e')), 'a deletion made room for another session');
  });

  addOwn('S-39 limits the bytes of a project', SOURCE, open({ ...UNLIMITED, maxBytes: 4 * LARGE }), async (store) => {
    const large = turn(1).map((message) => ({ ...message, content: 'x'.repeat(LARGE / 2) }));
    await store.create(FOREIGN, { metadata: {}, messages: large });
    const writes = ['a', 'b', 'c', 'd', 'e', 'f'].flatMap((key) => [
      () => store.create(session(key), { metadata: {}, messages: large }),
      () => store.fork(session('a'), `${key}, copied`, 1),
    ]);
    let refused = 0;
    for (const write of writes) if (await quotaRefused(write())) refused++;
    const bytes = await bytesOf(store);
    assert.ok(bytes <= 4 * LARGE + LARGE, `the project stores ${bytes} bytes`);
    assert.equal((await store.load(FOREIGN)).messages.length, 2, 'another project lost a session');
    if (refused > 0) await store.load(session('a')); // reading is not refused
    await store.delete(session('a'));
    await store.delete(session('b'));
    await store.create(session('g'), { metadata: {}, messages: large });
    assert.ok(await store.info(session('g')), 'deletions made room');
  });

  addOwn('S-39 counts the records of turns', SOURCE, open({ ...UNLIMITED, maxBytes: 4 * LARGE }), async (store) => {
    const keys = ['a', 'b', 'c', 'd', 'e', 'f'];
    let refused = 0;
    for (const key of keys)
      if (await quotaRefused(store.commit(session(key), { expected: 0, messages: turn(1), record: RECORD }))) refused++;
    const left = (await store.list(OWNER.project, { limit: 10, order: 'asc' })).length;
    assert.ok(left <= 5, `the project stores the records of ${left} turns, ${refused} were refused`);
  });

  addOwn(
    'S-39 commits a turn that began before its project reached a limit',
    SOURCE,
    open({ ...UNLIMITED, maxBytes: LARGE }),
    async (store) => {
      await store.begin(session('a'), { turnId: 'turn_1', input: turn(1) });
      const half = turn(2).map((message) => ({ ...message, content: 'x'.repeat(LARGE / 3) }));
      await store.create(session('b'), { metadata: {}, messages: half });
      await store.commit(session('a'), { turnId: 'turn_1', expected: 0, messages: half });
      assert.equal((await store.load(session('a'))).version, 1);
    },
  );
}

/** As in the cases above, for what is stored beside the messages. */
const RECORD = 'x'.repeat(LARGE);

function session(key: string): SessionId {
  return { ...OWNER, key };
}

/** Creates a session again that the store has evicted. */
async function restore(store: SessionStore, id: SessionId): Promise<void> {
  if (!(await store.info(id))) await store.create(id, { metadata: {}, messages: turn(1) });
}

async function beginAndCommit(store: SessionStore, id: SessionId): Promise<void> {
  const turnId = `turn_of_${id.key}`;
  await store.begin(id, { turnId, input: turn(9) });
  await store.commit(id, { turnId, expected: await store.version(id), messages: turn(9) });
}

/** Whether a write is refused because of a quota. @throws any other error. */
async function quotaRefused(write: Promise<void>): Promise<boolean> {
  try {
    await write;
    return false;
  } catch (error) {
    if (!(error instanceof ProjectQuotaExceeded)) throw error;
    assert.ok(error.message.includes(error.setting), `the error does not name the setting: "${error.message}"`);
    return true;
  }
}

async function bytesOf(store: SessionStore): Promise<number> {
  const sessions = await store.list(OWNER.project, { limit: 100, order: 'asc' });
  const sizes = await Promise.all(sessions.map(async ({ id }) => (await store.load(id)).bytes));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}
