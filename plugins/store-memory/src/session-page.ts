import type { SessionInfo, SessionPage } from '@plugboard/kernel/contracts';
import type { MemorySession } from './memory-session.js';

/** Returns one page of a project's sessions, ordered by last activity. */
export function sessionPage(
  sessions: Iterable<MemorySession>,
  project: string,
  { limit, order, after, user, agents }: SessionPage,
): readonly SessionInfo[] {
  const allowed = agents && new Set(agents);
  const all = [...sessions].filter(({ id }) => id.project === project);
  const sequence = all.find(({ conversation }) => conversation === after?.conversation)?.origin.sequence ?? -1;
  const compare = order === 'asc' ? byActivity : (a: Place, b: Place) => byActivity(b, a);
  return all
    .map((session) => ({ info: session.info, sequence: session.origin.sequence }))
    .filter(({ info }) => (allowed?.has(info.id.agent) ?? true) && (user === undefined || info.user === user))
    .filter((place) => after === undefined || compare(place, { info: after, sequence }) > 0)
    .sort(compare)
    .slice(0, limit)
    .map(({ info }) => info);
}

/** Where a session is in the order of all. */
interface Place {
  readonly info: Pick<SessionInfo, 'updatedAt'>;
  readonly sequence: number;
}

function byActivity(a: Place, b: Place): number {
  return a.info.updatedAt - b.info.updatedAt || a.sequence - b.sequence;
}
