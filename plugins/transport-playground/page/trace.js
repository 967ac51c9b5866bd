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
 * @property {number} free since when no tool runs: the next model call began then
 */

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
    trace = { startedAt: turn.startedAt, bars: [], waiting: new Map(), items: new Map(), model: undefined, free: 0 };
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
  'response.created': (trace, at) => {
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
    const full = server && server !== name ? `${server}/${name}` : name;
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
  const { facts } = turn;
  const bars = facts ? storedBars(facts) : (traces.get(turn)?.bars ?? []);
  return bars.toSorted((a, b) => (a.start ?? Infinity) - (b.start ?? Infinity));
}

/**
 * @typedef {object} TurnFacts what the server keeps of a turn, as `/v1/conversations/{id}/turns`
 *   shows it. Times are milliseconds since the request arrived.
 * @property {number} turn
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

/** @param {TurnFacts} facts @returns {Bar[]} */
function storedBars({ queued_ms, steps = [], calls = [], decisions = [] }) {
  const bar = { name: '', first: undefined, usage: undefined, state: '' };
  const decided = decisions.map(({ approve, by }) => {
    const state = `${approve ? 'approved' : 'denied'}${by === 'person' ? '' : ` (${by})`}`;
    return { ...bar, kind: /** @type {const} */ ('approval'), start: undefined, end: undefined, state };
  });
  return [
    ...(queued_ms ? [{ ...bar, kind: /** @type {const} */ ('queue'), start: 0, end: queued_ms }] : []),
    ...steps.map(({ connection, start_ms, first_token_ms, duration_ms, usage }) => ({
      ...bar,
      kind: /** @type {const} */ ('model'),
      name: connection,
      start: start_ms,
      first: first_token_ms ?? undefined,
      end: start_ms + duration_ms,
      usage: usage ?? undefined,
    })),
    ...calls.map(({ server_label = '', name, start_ms, duration_ms, status }) => {
      const isWaiting = status === 'waiting';
      return {
        ...bar,
        kind: isWaiting ? /** @type {const} */ ('approval') : /** @type {const} */ ('tool'),
        name: server_label !== '' && server_label !== name ? `${server_label}/${name}` : name,
        start: isWaiting ? undefined : start_ms,
        end: isWaiting ? undefined : start_ms + duration_ms,
        state: STATES[status] ?? '',
      };
    }),
    ...decided,
  ];
}

/** @type {Record<string, string>} */
const STATES = { failed: 'failed', incomplete: 'stopped', waiting: 'waiting', client: 'left to the client' };
