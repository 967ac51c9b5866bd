/** @typedef {import('./sessions.js').Session} Session */

/**
 * Metadata of sessions that belong together.
 *
 * - `branch_root`: the session that a group of branches began with. It names itself.
 * - `branch_of` and `branch_turn`: the session that a branch was copied from, and the number of the
 *   first turn that differs.
 * - `compared_with`: the session that received the same messages side by side.
 */
export const ROOT = 'branch_root';
const OF = 'branch_of';
const TURN = 'branch_turn';
export const COMPARED = 'compared_with';

/**
 * @param {Session} original @param {number} turn the first one that differs @returns
 * {Record<string, string>}
 */
export function branchMetadata(original, turn) {
  return { ...original.metadata, [ROOT]: rootOf(original), [OF]: original.id, [TURN]: String(turn) };
}

/**
 * The session that the branches of this one began with: itself if it has none. @param {Session}
 * session
 */
export function rootOf({ id, metadata }) {
  return metadata[ROOT] ?? id;
}

/**
 * The newest of each group of branches, in the order of the list.
 * @param {readonly Session[]} sessions newest first
 */
export function newestOfGroups(sessions) {
  const seen = new Set();
  return sessions.filter((session) => {
    const root = rootOf(session);
    return !seen.has(root) && seen.add(root);
  });
}

/**
 * The versions of one turn, oldest first, and which one of them a session has.
 * @param {readonly Session[]} group all branches, newest first @param {Session} session @param
 *   {number} turn its number, from 1
 * @returns {{ versions: Session[], at: number }} of each version the session that was used last
 */
export function versionsOf(group, session, turn) {
  const byId = new Map(group.map((one) => [one.id, one]));
  /**
   * The oldest session that has the first turns in common with this one.
   * @param {Session} one @param {number} turns @returns {Session}
   */
  const owner = (one, turns) => {
    const parent = byId.get(one.metadata[OF] ?? '');
    return parent && Number(one.metadata[TURN]) > turns ? owner(parent, turns) : one;
  };
  const self = byId.get(session.id) ?? session;
  const before = owner(self, turn - 1);
  const others = group.filter((one) => owner(one, turn - 1) === before);
  /** @type {Map<Session, Session>} */
  const newest = new Map();
  for (const one of others.toReversed().sort((a, b) => a.updated_at - b.updated_at)) {
    const version = owner(one, turn);
    if (version.turns >= turn || Number(version.metadata[TURN]) === turn) newest.set(version, one);
  }
  const origins = [...newest.keys()].sort((a, b) => a.created_at - b.created_at || turnOf(a) - turnOf(b));
  const versions = origins.map((origin) => newest.get(origin) ?? origin);
  return { versions, at: origins.indexOf(owner(self, turn)) };
}

/** @param {Session} session */
function turnOf({ metadata }) {
  return Number(metadata[TURN] ?? 0);
}
