import { takeNestedFacts } from './nested-turns.js';
import { sumOf, timeOf } from './turn.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./turn.js').Usage} Usage */

/**
 * @typedef {object} TurnFacts what the server knows of a turn: in `svc:turn.progress` while it
 *   runs, in `/v1/conversations/{id}/turns` later. Times are milliseconds since the request
 *   arrived.
 * @property {number | null} turn its number in the session
 * @property {string} [response] whose events said it; the store does not
 * @property {boolean} [isDropped] whether the session does not have it
 * @property {number | null} [created_at_ms] since 1970
 * @property {number | null} [queued_ms]
 * @property {number | null} [duration_ms] null while it runs
 * @property {Usage | null} [usage]
 * @property {StepFacts[]} [steps]
 * @property {CallFacts[]} [calls]
 * @property {{ approval_request_id: string, approve: boolean, by: string }[]} [decisions]
 *
 * @typedef {{ connection: string, start_ms: number, first_token_ms: number | null, duration_ms:
 *   number | null, usage: Usage | null, reasoning_ms: number | null }} StepFacts
 * @typedef {{ item_id: string | null, server_label?: string | null, name: string, step: number,
 *   start_ms: number, duration_ms: number | null, status: string, approval_request_id: string | null,
 *   nested?: NestedFacts }} CallFacts
 * @typedef {{ agent: string, usage: Usage | null, steps: StepFacts[], calls: CallFacts[] }}
 *   NestedFacts the turn that a call started
 */

/** Turns that one request asks for. */
const PAGE = 100;

/**
 * Takes over what has changed in a turn that runs. @param {Turn} turn @param {ProtocolEvent} event
 */
export function takeProgress(turn, { type, sequence_number, stream_id, at_ms, steps = [], calls = [], ...head }) {
  const response = turn.responseId;
  let facts = turn.facts.find((one) => one.response === response);
  if (!facts) {
    facts = { turn: null, response, steps: [], calls: [] };
    turn.facts = [...turn.facts.filter((one) => one.turn !== head.turn), facts];
    turn.startedAt = performance.now() - at_ms;
  }
  turn.startedAt = Math.min(turn.startedAt, performance.now() - at_ms); // past events of a resumed turn arrive late
  Object.assign(facts, head);
  for (const { index, ...step } of steps) facts.steps?.splice(index, 1, step);
  for (const { index, ...call } of calls) facts.calls?.splice(index, 1, call);
  applyTimes(turn);
  applyNestedFacts(turn, { turn: null, calls });
}

/**
 * Adds what the server keeps of the turns of a session: their times, their tokens, and when their
 * calls ran. A turn that went on after decisions is several turns of the server.
 * @param {import('./api.js').Api} api @param {string} id of the session
 * @param {readonly Turn[]} turns oldest first
 */
export async function addFacts(api, id, turns) {
  const stored = turns.filter(({ number }) => number > 0);
  const oldest = stored.find(({ facts }) => facts.length === 0)?.number ?? Number.POSITIVE_INFINITY;
  /** @type {(TurnFacts & { id: string, turn: number })[]} */
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
  turn.facts = [...turn.facts, facts].sort((a, b) => Number(a.turn) - Number(b.turn));
  turn.usage = turn.facts.reduce((/** @type {Usage | undefined} */ sum, { usage }) => sumOf(sum, usage ?? undefined), undefined);
  turn.ms = timeOf(turn);
  applyTimes(turn);
  applyNestedFacts(turn, facts);
}

/**
 * Writes what happened in the turns that calls started to the items. @param {Turn} turn @param
 * {TurnFacts} facts
 */
function applyNestedFacts({ items }, { calls = [] }) {
  for (const { item_id, nested } of calls) {
    const item = nested ? items.find(({ id }) => id === item_id) : undefined;
    if (nested && item?.kind === 'tool') takeNestedFacts(item, nested);
  }
}

/**
 * Writes the times of calls and of reasoning to their items, and which calls have an unknown
 * effect, for which the protocol has no word. @param {Turn} turn
 */
function applyTimes({ facts: all, items }) {
  for (const { item_id, duration_ms, status } of all.flatMap(({ calls = [] }) => calls)) {
    const item = items.find(({ id }) => id === item_id);
    if (item?.kind !== 'tool') continue;
    item.ms = duration_ms ?? undefined;
    if (status === 'unknown') item.status = status;
  }
  const reasoning = items.filter((item) => item.kind === 'reasoning');
  const times = all.flatMap(({ steps = [] }) => steps.flatMap(({ reasoning_ms: ms }) => ms ?? []));
  if (times.length === reasoning.length) for (const [at, item] of reasoning.entries()) item.ms = times[at];
}
