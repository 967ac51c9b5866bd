import { wasSeen } from './trace.js';
import { sumOf } from './turn.js';

/** @typedef {import('./trace.js').TurnFacts} TurnFacts */
/** @typedef {import('./turn.js').Turn} Turn */

/** Turns that one request asks for. */
const PAGE = 100;

/**
 * Adds what the server keeps of the turns of a session: their times, their tokens, and when their
 * calls ran. A turn that went on after decisions is several turns of the server.
 * @param {import('./api.js').Api} api @param {string} id of the session
 * @param {readonly Turn[]} turns oldest first
 */
export async function addFacts(api, id, turns) {
  const stored = turns.filter(({ number }) => number > 0);
  const oldest = stored.find(({ facts }) => facts.length === 0)?.number ?? Number.POSITIVE_INFINITY;
  /** @type {TurnFacts[]} */
  const found = [];
  let after = '';
  while (oldest <= (stored.at(-1)?.number ?? 0)) {
    const { data, has_more } = await api.get(`v1/conversations/${encodeURIComponent(id)}/turns?limit=${PAGE}${after}`);
    found.push(...data);
    const last = data.at(-1);
    if (!last || !has_more || last.turn <= oldest) break;
    after = `&after=${encodeURIComponent(last.id)}`;
  }
  for (const facts of found.toReversed()) {
    const turn = stored.findLast(({ number }) => number <= facts.turn);
    if (turn && !turn.facts.some((one) => one.turn === facts.turn)) add(turn, facts);
  }
}

/** @param {Turn} turn @param {TurnFacts} facts */
function add(turn, facts) {
  turn.version++;
  turn.facts = [...turn.facts, facts];
  if (!wasSeen(turn)) {
    turn.ms = (turn.ms ?? 0) + (facts.duration_ms ?? 0) || undefined;
    turn.usage = sumOf(turn.usage, facts.usage ?? undefined);
  }
  for (const { item_id, start_ms, duration_ms } of facts.calls ?? []) {
    const item = turn.items.find(({ id }) => id === item_id);
    if (item?.kind === 'tool' && start_ms !== null && item.status !== 'waiting') item.ms ??= duration_ms;
  }
}
