import type { SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import type { MemorySession } from './memory-session.js';

/** Returns one page of a project's sessions, ordered by creation. */
export function sessionPage(
  sessions: Iterable<MemorySession>,
  project: string,
  { limit, order, after, user, agents }: SessionPage,
): readonly SessionInfo[] {
  const allowed = agents && new Set(agents);
  const found = [...sessions].filter(({ id }) => id.project === project && (allowed?.has(id.agent) ?? true)).sort(byCreation);
  if (order === 'desc') found.reverse();
  const last = found.findIndex(({ conversation }) => conversation === after);
  if (after !== undefined && last < 0) return [];
  const infos = found.slice(last + 1).map((session) => session.info);
  return infos.filter((info) => user === undefined || info.user === user).slice(0, limit);
}

function byCreation({ origin: a }: MemorySession, { origin: b }: MemorySession): number {
  return a.createdAt - b.createdAt || a.sequence - b.sequence;
}
