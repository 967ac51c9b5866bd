import type { Message, PluginContext, SessionStore } from '@plugboard/kernel';
import { Account, type SessionInfo, type StoredSession } from '@plugboard/kernel/contracts';
import { ManualClock, testContext } from '@plugboard/testing';
import t from 'tap';
import { TurnMemory } from '../../../src/engine/limits/turn-memory.js';
import definition from '../../../src/index.js';
import { SessionHistory } from '../../../src/sessions/conversation/session-history.js';
import { SessionStorage } from '../../../src/sessions/store/session-storage.js';
import { extensions, storeWith, user } from '../../harness.js';

const jsonSize = (messages: readonly Message[]) =>
  messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);

/** The memory of a runtime, the budget behind it, and an account in it. */
function startMemory(limit: string) {
  const clock = new ManualClock();
  const ctx = testContext(definition, { config: { limits: { memory: limit } }, entry: 'runtime', clock });
  const memory = new TurnMemory(ctx);
  const historyOf = (key: string, store: SessionStore) => {
    const stored = { ...ctx, extensions: () => extensions({ store }) } as unknown as PluginContext;
    return new SessionHistory({ project: 'p', agent: 'a', key }, new SessionStorage(stored), memory);
  };
  const open = (tokenId: string) => {
    const account = new Account(ctx.budgets.memory, { project: 'default', scopes: [], tokenId });
    return { account, leave: account.hold() };
  };
  return { budget: ctx.budgets.memory, historyOf, open, clock };
}

const { signal } = new AbortController();

t.test('S-37 S-51 a history counts in the account of its turn, and between turns as a cache', async (t) => {
  const loaded: Message[] = [user('x'.repeat(100_000)), { role: 'assistant', content: 'é'.repeat(50_000) }];
  const stored: StoredSession = { version: 1, turns: 1, messages: loaded, bytes: jsonSize(loaded) };
  const info = { bytes: stored.bytes + 300_000 } as SessionInfo; // with documents
  const store = storeWith({ load: async () => stored, info: async () => info, commit: async () => {} });
  const { budget, historyOf, open } = startMemory('100mb');
  const history = historyOf('k', store);

  const { account, leave } = open('one');
  const session = await history.current(account, signal);
  t.equal(account.reserved, 3 * stored.bytes, 'what was reserved too much was given back');
  t.equal(budget.report.cached, 0);
  const added: Message[] = [user('and now?'), { role: 'assistant', content: 'y'.repeat(3000) }];
  await history.commit(session, { turnId: 'turn_1', messages: added });
  history.idle();
  leave();
  t.match(budget.report, { used: 0, cached: 3 * (stored.bytes + jsonSize(added)) });

  history.release();
  t.match(budget.report, { used: 0, cached: 0 });
});

t.test('a cached history is validated once in each generation of the store', async (t) => {
  const stored: StoredSession = { version: 1, turns: 1, messages: [user('a')], bytes: 30 };
  let version = 1;
  let asked = 0;
  const store = {
    ...storeWith({
      load: async () => ({ ...stored, version }),
      info: async () => ({ bytes: stored.bytes }) as SessionInfo,
      version: async () => {
        asked++;
        return version;
      },
      commit: async () => {
        version++;
      },
    }),
    generation: {} as object | undefined,
  };
  const { historyOf, open } = startMemory('2mb');
  const history = historyOf('k', store);
  const takeTurn = async () => {
    const { account, leave } = open('one');
    const loaded = await history.current(account, signal);
    await history.commit(loaded, { turnId: 'turn_1', messages: [] });
    history.idle();
    leave();
    return loaded.version;
  };
  t.same([await takeTurn(), await takeTurn(), asked], [1, 2, 0]);
  store.generation = {};
  t.same([await takeTurn(), await takeTurn(), asked], [3, 4, 1], 'another session has changed');
  store.generation = {};
  version = 9;
  t.same([await takeTurn(), await takeTurn(), asked], [9, 10, 2], 'it was deleted, and made again');
  store.generation = undefined;
  t.same([await takeTurn(), await takeTurn(), asked], [11, 12, 4], 'a store that does not say so');
});

t.test('S-51 a history is not loaded before there is memory for it', async (t) => {
  const messages: Message[] = [user('x'.repeat(200_000))];
  const stored: StoredSession = { version: 1, turns: 1, messages, bytes: jsonSize(messages) };
  let loads = 0;
  const load = async () => {
    loads++;
    return stored;
  };
  const store = storeWith({ load, info: async () => ({ bytes: stored.bytes }) as SessionInfo });
  const { budget, historyOf, open, clock } = startMemory('2mb');
  const a = historyOf('a', store);
  const b = historyOf('b', store);
  const [first, second] = [open('one'), open('one')];
  await a.current(first.account, signal);
  const gone = b.current(open('one').account, AbortSignal.abort(new Error('gone')));
  await t.rejects(gone, { message: 'gone' });
  const late = b.current(open('one').account, signal);
  await new Promise(setImmediate);
  clock.advance(60_000);
  await t.rejects(late, { code: 'overloaded', message: /`limits\.memory`/, options: { retryAfter: 5 } });
  const waiting = b.current(second.account, signal);
  await new Promise(setImmediate);
  t.equal(loads, 1, 'the second waits');
  first.leave();
  await waiting;
  t.equal(loads, 2);
  t.equal(second.account.reserved, 3 * stored.bytes);
  budget.resize(100_000);
  await t.rejects(a.current(open('two').account, signal), {
    code: 'session_full',
    message: /`limits\.memory`/,
  });
});
