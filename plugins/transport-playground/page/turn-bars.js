import { isRunning } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./turn.js').Usage} Usage */
/** @typedef {import('./turn-facts.js').TurnFacts} TurnFacts */

/**
 * @typedef {object} Bar a part of a turn. Times are milliseconds since the turn began.
 * @property {'queue' | 'model' | 'tool' | 'approval'} kind
 * @property {string} name of the model connection or the tool
 * @property {number | undefined} start undefined if it is unknown
 * @property {number | undefined} first token of a model call
 * @property {number | undefined} end undefined while it goes on
 * @property {Usage | undefined} usage of a model call
 * @property {string} state how it ended, where that is not the usual way
 */

/** A turn that waits for less did not queue, in milliseconds. */
const MIN_QUEUE = 10;

/**
 * The parts of a turn, from what the server says of it: the same while it runs and later. A turn
 * that went on after decisions is several turns of the server, one behind the other, with the
 * decisions between them.
 * @param {Turn} turn @param {number} now on the clock of the page
 * @returns {{ bars: Bar[], length: number }}
 */
export function barsOf(turn, now = performance.now()) {
  const { facts: all, items, startedAt, status } = turn;
  const runs = isRunning(turn);
  const isWaiting = items.some((item) => item.kind === 'tool' && item.status === 'waiting');
  const began = all[0]?.created_at_ms ?? 0;
  /** @type {Bar[]} */
  const bars = [];
  let free = 0;
  all.forEach((facts, index) => {
    const start = Math.max(free, (facts.created_at_ms ?? began) - began);
    const next = all[index + 1];
    const own = barsOfOne(facts, start);
    const isOpen = runs && next === undefined && facts.duration_ms === null;
    if (isOpen && own.every(({ end }) => end !== undefined)) own.push(awaited(own, start + (facts.queued_ms ?? 0)));
    free = isOpen ? start + now - startedAt : start + (facts.duration_ms ?? 0);
    if (!isOpen) for (const one of own) if (one.end === undefined) Object.assign(one, { end: free, state: 'stopped' });
    const end = next && Math.max(free, (next.created_at_ms ?? began) - began);
    const state = next ? decisionsOf(next) : isWaiting ? 'waiting' : '';
    const asked = (facts.calls ?? []).filter((call) => call.status === 'waiting');
    const approvals = asked.map(({ server_label: server, name }) =>
      bar('approval', nameOf(server, name), { start: free, end, state }),
    );
    bars.push(...own, ...approvals);
  });
  if (runs && all.length === 0) {
    free = now - startedAt;
    bars.push(bar(status === 'queued' ? 'queue' : 'model', '', { start: 0 }));
  }
  const room = isWaiting && !runs ? free / 4 : 0; // its bar has no end
  const length = Math.max(1, free + room, ...bars.map(({ end = 0 }) => end));
  return { bars: bars.toSorted((a, b) => orderOf(a.start) - orderOf(b.start) || orderOf(a.end) - orderOf(b.end)), length };
}

/**
 * The model call whose answer has not begun. @param {Bar[]} bars before it @param {number} start
 */
function awaited(bars, start) {
  return bar('model', '', { start: Math.max(start, ...bars.map(({ end = 0 }) => end)) });
}

/** @param {TurnFacts} facts @param {number} began @returns {Bar[]} */
function barsOfOne({ queued_ms, ...facts }, began) {
  const queue = queued_ms && queued_ms >= MIN_QUEUE ? [bar('queue', '', { start: began, end: began + queued_ms })] : [];
  return [...queue, ...barsOfSteps(facts, began, '')];
}

/**
 * The model calls and tool calls, also of the turns that calls started.
 * @param {Pick<TurnFacts, 'steps' | 'calls'>} facts @param {number} began
 * @param {string} agents before the name, if it is the turn of a call @returns {Bar[]}
 */
function barsOfSteps({ steps = [], calls = [] }, began, agents) {
  const at = (/** @type {number} */ ms) => began + ms;
  const after = (/** @type {number} */ start, /** @type {number | null} */ ms) => (ms === null ? undefined : at(start + ms));
  const models = steps.map(({ connection, start_ms: start, first_token_ms: first, duration_ms: ms, usage }) =>
    bar('model', agents + connection, {
      start: at(start),
      first: first === null ? undefined : at(first),
      end: after(start, ms),
      usage: usage ?? undefined,
    }),
  );
  const tools = calls
    .filter(({ status }) => status !== 'waiting')
    .map(({ server_label: server, name, start_ms: start, duration_ms: ms, status }) => {
      const end = status === 'in_progress' ? undefined : after(start, ms ?? 0);
      return bar('tool', agents + nameOf(server, name), { start: at(start), end, state: STATES[status] ?? '' });
    });
  const nested = calls.flatMap((call) =>
    call.nested ? barsOfSteps(call.nested, began, `${agents}${call.nested.agent} › `) : [],
  );
  return [...models, ...tools, ...nested];
}

/** @param {Bar['kind']} kind @param {string} name @param {Partial<Bar>} fields @returns {Bar} */
function bar(kind, name, fields) {
  return { kind, name, start: undefined, first: undefined, end: undefined, usage: undefined, state: '', ...fields };
}

/** @param {number | undefined} ms */
function orderOf(ms) {
  return ms ?? Number.MAX_SAFE_INTEGER;
}

/** What was decided, and by whom if not by a person. @param {TurnFacts} facts */
function decisionsOf({ decisions = [] }) {
  const words = decisions.map(({ approve, by }) => `${approve ? 'approved' : 'denied'}${by === 'person' ? '' : ` (${by})`}`);
  return [...new Set(words)].join(', ');
}

/** @param {string | null | undefined} server @param {string} name */
function nameOf(server, name) {
  return server && server !== name ? `${server}/${name}` : name;
}

/** @type {Record<string, string>} */
const STATES = { failed: 'failed', unknown: 'unknown effect', incomplete: 'stopped', client: 'left to the client' };
