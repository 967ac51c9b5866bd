/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./turn.js').Usage} Usage */

/**
 * @typedef {object} Bar a part of a turn. Times are milliseconds since the turn began.
 * @property {'queue' | 'model' | 'tool' | 'approval'} kind
 * @property {string} name of the model connection or the tool
 * @property {number | undefined} start undefined if it is unknown
 * @property {number | undefined} first token of a model call
 * @property {number | undefined} end undefined while it goes on
 * @property {Usage | undefined} usage of a model call
 * @property {string} state how it ended, where that is not the usual way
 *
 * @typedef {object} Trace
 * @property {number} startedAt on the clock of the page
 * @property {Bar[]} bars
 * @property {Map<string, Bar>} waiting calls and approvals that go on, by item
 * @property {Map<string, { start: number, end: number }>} items when the events of each item
 *   arrived
 * @property {Bar | undefined} model the model call that goes on
 * @property {Set<string>} responses of the turn: it has another after each decision
 * @property {number} free since when no tool runs: the next model call began then
 */

/** A turn that waits for less did not queue, in milliseconds. */
const MIN_QUEUE = 10;

/** @type {WeakMap<Turn, Trace>} */
const traces = new WeakMap();

/**
 * Notes when an event of a turn arrives, before it is applied. The past events of a turn that ran
 * before the page followed it arrive all at once, so such a turn has no trace.
 * @param {Turn} turn @param {ProtocolEvent} event
 */
export function record(turn, event) {
  const now = performance.now();
  let trace = traces.get(turn);
  if (!trace) {
    if (turn.responseId !== '' || event.type !== 'response.created') return;
    trace = {
      startedAt: turn.startedAt,
      bars: [],
      waiting: new Map(),
      items: new Map(),
      model: undefined,
      responses: new Set(),
      free: 0,
    };
    traces.set(turn, trace);
  }
  const at = now - trace.startedAt;
  const id = event.item_id ?? event.item?.id;
  if (id !== undefined) trace.items.set(id, { start: trace.items.get(id)?.start ?? at, end: at });
  if (event.delta !== undefined) modelSpeaks(trace, at);
  RECORD[event.type]?.(trace, at, event);
}

/** @type {Record<string, (trace: Trace, at: number, event: ProtocolEvent) => void>} */
const RECORD = {
  'response.created': (trace, at, { response }) => {
    trace.responses.add(response.id);
    for (const [id, bar] of trace.waiting) if (bar.kind === 'approval') close(trace, id, at, '');
    if (trace.bars.length > 0) trace.free = at; // the turn goes on after decisions
  },
  'response.queued': (trace, at) => open(trace, 'queue', { kind: 'queue', name: '', start: at }),
  'response.in_progress': (trace, at) => {
    if (!trace.waiting.has('queue')) return;
    close(trace, 'queue', at, '');
    trace.free = at;
  },
  'response.output_item.added': (trace, at, { item }) => {
    const { type, id, server_label: server, name = '', approval_request_id } = item;
    if (!approval_request_id) modelSpeaks(trace, at);
    const full = nameOf(server, name);
    if (type === 'mcp_call') open(trace, id, { kind: 'tool', name: full, start: at });
    if (type === 'mcp_approval_request') open(trace, id, { kind: 'approval', name: full, start: at });
  },
  'response.mcp_call_arguments.done': (trace, at, { item_id }) => {
    const bar = trace.waiting.get(item_id);
    if (bar) bar.start = at; // until now the model was writing the arguments
  },
  'response.mcp_call.completed': (trace, at, { item_id }) => close(trace, item_id, at, ''),
  'response.mcp_call.failed': (trace, at, { item_id }) => close(trace, item_id, at, 'failed'),
  'response.output_item.done': (trace, at, { item }) => {
    if (item.type === 'mcp_call') close(trace, item.id, at, item.error ? 'failed' : '');
  },
  'response.completed': end,
  'response.failed': end,
  'response.incomplete': end,
};

/** @param {Trace} trace @param {string} id @param {Pick<Bar, 'kind' | 'name' | 'start'>} fields */
function open(trace, id, fields) {
  if (trace.waiting.has(id)) return;
  const bar = { ...fields, first: undefined, end: undefined, usage: undefined, state: '' };
  trace.waiting.set(id, bar);
  trace.bars.push(bar);
}

/** @param {Trace} trace @param {string} id @param {number} at @param {string} state */
function close(trace, id, at, state) {
  const bar = trace.waiting.get(id);
  if (!bar) return;
  trace.waiting.delete(id);
  Object.assign(bar, { end: at, state });
  trace.model = undefined;
  trace.free = at;
}

/** @param {Trace} trace @param {number} at */
function modelSpeaks(trace, at) {
  if (!trace.model) {
    trace.model = { kind: 'model', name: '', start: trace.free, first: at, end: at, usage: undefined, state: '' };
    trace.bars.push(trace.model);
  }
  trace.model.end = at;
}

/** @param {Trace} trace @param {number} at @param {ProtocolEvent} event */
function end(trace, at, { response }) {
  const models = trace.bars.filter(({ kind }) => kind === 'model');
  if (models.length === 0)
    trace.bars.push({ kind: 'model', name: '', start: trace.free, first: undefined, end: at, usage: undefined, state: '' });
  else if (trace.model) trace.model.end = at;
  const [only] = models;
  if (only && models.length === 1) only.usage = response.usage ?? undefined;
  for (const [id, { kind }] of trace.waiting) if (kind !== 'approval') close(trace, id, at, 'stopped');
  trace.model = undefined;
}

/**
 * How long the events of an item arrived, if the page saw them. @param {Turn} turn @param {string}
 * id
 */
export function timeOf(turn, id) {
  const times = traces.get(turn)?.items.get(id);
  return times && times.end - times.start;
}

/** The parts of a turn, as far as they are known. @param {Turn} turn @returns {readonly Bar[]} */
export function barsOf(turn) {
  const bars = turn.facts.length > 0 ? storedBars(turn) : (traces.get(turn)?.bars ?? []);
  return bars.toSorted((a, b) => orderOf(a.start) - orderOf(b.start) || orderOf(a.end) - orderOf(b.end));
}

/** @param {number | undefined} ms */
function orderOf(ms) {
  return ms ?? Number.MAX_SAFE_INTEGER;
}

/** Whether the page saw the turn run, from its first event. @param {Turn} turn */
export function wasSeen(turn) {
  return traces.has(turn);
}

/**
 * The ids of the responses that a turn consists of, as far as the page saw them. @param {Turn} turn
 */
export function responsesOf(turn) {
  return traces.get(turn)?.responses ?? new Set([turn.responseId]);
}

/**
 * @typedef {object} TurnFacts what the server keeps of a turn, as `/v1/conversations/{id}/turns`
 *   shows it. Times are milliseconds since the request arrived.
 * @property {number} turn
 * @property {number | null} [created_at] seconds since 1970
 * @property {number | null} [queued_ms]
 * @property {number | null} [duration_ms]
 * @property {Usage | null} [usage]
 * @property {{ connection: string, start_ms: number, first_token_ms: number | null, duration_ms:
 *   number, usage: Usage | null, reasoning: string | null }[]} [steps]
 * @property {{ item_id: string | null, server_label?: string, name: string, start_ms: number,
 *   duration_ms: number, status: string, error: string | null, approval_request_id: string | null
 *   }[]} [calls]
 * @property {{ approval_request_id: string, approve: boolean, by: string }[]} [decisions]
 */

/**
 * The bars of the turns of the server that make up one turn of the page, one behind the other, with
 * the decisions between them.
 * @param {Turn} turn @returns {Bar[]}
 */
function storedBars({ facts: all, items }) {
  const began = all[0]?.created_at ?? 0;
  const isWaiting = items.some((item) => item.kind === 'tool' && item.status === 'waiting');
  let free = 0;
  return all.flatMap((facts, index) => {
    const start = Math.max(free, ((facts.created_at ?? began) - began) * 1000);
    free = start + (facts.duration_ms ?? 0);
    const next = all[index + 1];
    const end = next && Math.max(free, ((next.created_at ?? began) - began) * 1000);
    const state = next ? decisionsOf(next) : isWaiting ? 'waiting' : '';
    const asked = (facts.calls ?? []).filter(({ status }) => status === 'waiting');
    const approvals = asked.map(({ server_label: server, name }) =>
      bar('approval', nameOf(server, name), { start: free, end, state }),
    );
    return [...barsOfOne(facts, start), ...approvals];
  });
}

/** @param {TurnFacts} facts @param {number} began @returns {Bar[]} */
function barsOfOne({ queued_ms, steps = [], calls = [] }, began) {
  const at = (/** @type {number} */ ms) => began + ms;
  const queue = queued_ms && queued_ms >= MIN_QUEUE ? [bar('queue', '', { start: began, end: at(queued_ms) })] : [];
  const models = steps.map(({ connection, start_ms: start, first_token_ms: first, duration_ms: ms, usage }) =>
    bar('model', connection, {
      start: at(start),
      first: first === null ? undefined : at(first),
      end: at(start + ms),
      usage: usage ?? undefined,
    }),
  );
  const tools = calls
    .filter(({ status }) => status !== 'waiting')
    .map(({ server_label: server, name, start_ms: start, duration_ms: ms, status }) => {
      const times = start === null ? {} : { start: at(start), end: at(start + (ms ?? 0)) };
      return bar('tool', nameOf(server, name), { ...times, state: STATES[status] ?? '' });
    });
  return [...queue, ...models, ...tools];
}

/** @param {Bar['kind']} kind @param {string} name @param {Partial<Bar>} fields @returns {Bar} */
function bar(kind, name, fields) {
  return { kind, name, start: undefined, first: undefined, end: undefined, usage: undefined, state: '', ...fields };
}

/** What was decided, and by whom if not by a person. @param {TurnFacts} facts */
function decisionsOf({ decisions = [] }) {
  const words = decisions.map(({ approve, by }) => `${approve ? 'approved' : 'denied'}${by === 'person' ? '' : ` (${by})`}`);
  return [...new Set(words)].join(', ');
}

/** @param {string | undefined} server @param {string} name */
function nameOf(server, name) {
  return server && server !== name ? `${server}/${name}` : name;
}

/** @type {Record<string, string>} */
const STATES = { failed: 'failed', incomplete: 'stopped', client: 'left to the client' };
