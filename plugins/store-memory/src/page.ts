import type { SessionInfo, SessionPage } from '@plugboard/kernel';
import type { MemorySession } from './memory-session.js';

/** One page of a project's sessions, in the order in which they were created. */
export function pageOf(
  sessions: Iterable<MemorySession>,
  project: string,
  { limit, order, after, user, agents }: SessionPage,
): readonly SessionInfo[] {
  const among = agents && new Set(agents);
  const found = [...sessions].filter(({ id }) => id.project === project && (among?.has(id.agent) ?? true)).sort(byCreation);
  if (order === 'desc') found.reverse();
  const last = found.findIndex(({ conversation }) => conversation === after);
  if (after !== undefined && last < 0) return [];
  const info = found.slice(last + 1).map((session) => session.info);
  return info.filter((one) => user === undefined || one.user === user).slice(0, limit);
}

function byCreation({ beginning: a }: MemorySession, { beginning: b }: MemorySession): number {
  return a.createdAt - b.createdAt || a.number - b.number;
}
