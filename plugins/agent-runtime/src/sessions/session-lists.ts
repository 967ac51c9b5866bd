import { setImmediate } from 'node:timers/promises';
import type { Principal } from '@plugboard/kernel';
import type { Account, Conversation, Conversations, SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import type { SessionSupervisor } from './session-supervisor.js';
import type { SessionStorage } from './store/session-storage.js';

/** Sessions that are read from the store at once, to find those that match. */
const READ_AT_ONCE = 200;

/** Bytes that one session of a list may take: 16 pairs of metadata, its title and its keys. */
const INFO_SIZE = 12 * 1024;

/** The page of a list, and its filters. */
export type ListPage = Parameters<Conversations['list']>[0];

/** Lists sessions: those of the store, and those whose first turn runs. */
export async function listSessions(
  sessions: SessionSupervisor,
  storage: SessionStorage,
  page: ListPage,
  principal: Principal,
  account: Account,
): Promise<readonly Conversation[]> {
  account.require((isFiltered(page) ? READ_AT_ONCE + page.limit : page.limit) * INFO_SIZE);
  const found: Conversation[] = [];
  for await (const info of listed(sessions, storage, page, principal, account)) {
    const conversation = { ...info, status: sessions.statusOf(info) };
    if (!matches(conversation, page)) continue;
    found.push(conversation);
    if (found.length === page.limit) break;
  }
  return found;
}

/**
 * Reads the sessions of a list. What the store cannot filter is read page by page, and callers
 * share the time that it takes.
 */
async function* listed(
  sessions: SessionSupervisor,
  storage: SessionStorage,
  page: ListPage,
  principal: Principal,
  account: Account,
): AsyncGenerator<SessionInfo> {
  const { agent, status, search, metadata, limit, ...rest } = page;
  const { project, agents: own } = principal;
  const agents = agent === undefined ? own : [agent].filter((name) => own?.includes(name) ?? true);
  const size = isFiltered(page) ? READ_AT_ONCE : limit;
  const begun = await begunSessions(sessions, { ...rest, agents }, project);
  const seen = new Set(begun.map(({ conversation }) => conversation));
  const precedes = (one: SessionInfo, other: SessionInfo) =>
    rest.order === 'asc' ? one.updatedAt < other.updatedAt : one.updatedAt > other.updatedAt;
  for (let after = rest.after; ; ) {
    if (isFiltered(page)) {
      await setImmediate(); // what the page before it took is counted
      await account.timeSlice();
    }
    const read = { ...rest, after, limit: size, agents };
    const infos = await storage.call((store) => store.list(project, read), 'list');
    for (const info of infos) {
      for (let first = begun[0]; first && precedes(first, info); first = begun[0]) {
        yield first;
        begun.shift();
      }
      // A session with a turn since moves to the end of a list that is read from the oldest on.
      if (!seen.has(info.conversation)) yield info;
      seen.add(info.conversation);
    }
    after = infos.at(-1);
    if (infos.length < size) return yield* begun;
  }
}

/** The sessions that the store does not have yet, because their first turn runs, in order. */
async function begunSessions(
  sessions: SessionSupervisor,
  { order, after, user, agents }: Omit<SessionPage, 'limit'>,
  project: string,
): Promise<SessionInfo[]> {
  const sign = order === 'asc' ? 1 : -1;
  const all = sessions
    .begun(project)
    .filter(
      ({ info }) =>
        (agents?.includes(info.id.agent) ?? true) &&
        (user === undefined || info.user === user) &&
        (after === undefined || sign * (info.updatedAt - after.updatedAt) > 0),
    );
  const stored = await Promise.all(all.map((one) => one.isStored()));
  const begun = all.filter((_, at) => !stored[at]).map(({ info }) => info);
  return begun.sort((a, b) => sign * (a.updatedAt - b.updatedAt));
}

/** Whether a list has filters that the store does not know. */
function isFiltered({ status, search, metadata }: ListPage): boolean {
  return status !== undefined || search !== undefined || metadata !== undefined;
}

function matches({ title, id, metadata, status }: Conversation, wanted: ListPage): boolean {
  if (wanted.status !== undefined && status !== wanted.status) return false;
  if (wanted.metadata && metadata[wanted.metadata.name] !== wanted.metadata.value) return false;
  const search = wanted.search?.toLowerCase();
  return search === undefined || [title, id.key, metadata.title].some((text) => text?.toLowerCase().includes(search) === true);
}
