/**
 * @typedef {object} TextItem
 * @property {'text'} kind
 * @property {string} id
 * @property {string} text
 *
 * @typedef {object} ReasoningItem
 * @property {'reasoning'} kind
 * @property {string} id
 * @property {string} text
 *
 * @typedef {object} ToolItem a tool call, run by the server or, with `isOurs`, left to the caller
 * @property {'tool'} kind
 * @property {string} id
 * @property {string} server the tool's entry in the configuration; empty where it is not known
 * @property {string} name
 * @property {string} arguments JSON text, perhaps not complete yet
 * @property {string | null} output
 * @property {string | null} error
 * @property {'running' | 'ok' | 'failed' | 'stopped'} status
 * @property {boolean} isOurs
 * @property {string} callId of a call that is left to the caller
 * @property {number} startedAt
 * @property {number | undefined} ms how long it ran, where it was watched
 * @property {string} progress what the tool last said of its progress
 *
 * @typedef {TextItem | ReasoningItem | ToolItem} TurnItem
 *
 * @typedef {object} Usage
 * @property {number} input_tokens
 * @property {number} output_tokens
 * @property {number} total_tokens
 *
 * @typedef {object} Turn one message of the user and all that came of it
 * @property {number} number counted from 1, within this page
 * @property {string} input
 * @property {TurnItem[]} items
 * @property {'sending' | 'queued' | 'running' | 'completed' | 'incomplete' | 'failed'} status
 * @property {number} queuePosition
 * @property {string} reason why it is incomplete
 * @property {{ code: string | null, message: string } | undefined} error
 * @property {string} responseId
 * @property {number} sequence of the last event that was taken in; -1 before the first
 * @property {Usage | undefined} usage
 * @property {number} startedAt
 * @property {number | undefined} ms how long it took, where it was watched
 * @property {number} version grows with each change
 *
 * @typedef {{ type: string, [field: string]: any }} ProtocolEvent an event of the Responses protocol, websocket.md
 */

const ENDS = new Set(['response.completed', 'response.failed', 'response.incomplete']);

let turns = 0;

/** @param {string} input @param {Partial<Turn>} [fields] @returns {Turn} */
export function newTurn(input, fields = {}) {
  return {
    number: ++turns,
    input,
    items: [],
    status: 'sending',
    queuePosition: 0,
    reason: '',
    error: undefined,
    responseId: '',
    sequence: -1,
    usage: undefined,
    startedAt: 0,
    ms: undefined,
    version: 0,
    ...fields,
  };
}

/** @param {ProtocolEvent} event */
export function endsTurn(event) {
  return ENDS.has(event.type);
}

/** @param {Turn} turn */
export function isRunning({ status }) {
  return status === 'sending' || status === 'queued' || status === 'running';
}

/** The answer's text. @param {Turn} turn */
export function answerOf(turn) {
  return turn.items
    .flatMap((item) => (item.kind === 'text' ? [item.text] : []))
    .join('\n\n')
    .trim();
}

/**
 * Takes one event into a turn. Events that have been taken in already, as a resumed response may send, change nothing.
 * @param {Turn} turn @param {ProtocolEvent} event @param {number} now milliseconds, on the scale of `startedAt`
 */
export function applyEvent(turn, event, now) {
  if (typeof event.sequence_number === 'number') {
    if (event.sequence_number <= turn.sequence) return;
    turn.sequence = event.sequence_number;
  }
  turn.version++;
  APPLY[event.type]?.(turn, event, now);
  if (endsTurn(event)) endTurn(turn, event.response ?? {}, now);
}

/** Ends a turn from this side: the message was not accepted, or the connection was lost. @param {Turn} turn @param {{ code?: string | null, message: string }} error @param {number} now */
export function failTurn(turn, { code = null, message }, now) {
  turn.version++;
  turn.status = 'failed';
  turn.error = { code, message };
  close(turn, now);
}

/** Ends a turn that its user stopped. @param {Turn} turn @param {number} now */
export function stopTurn(turn, now) {
  turn.version++;
  turn.status = 'incomplete';
  turn.reason = 'cancelled';
  close(turn, now);
}

/** @type {Record<string, (turn: Turn, event: ProtocolEvent, now: number) => void>} */
const APPLY = {
  'response.created': (turn, { response }) => {
    turn.responseId = response.id;
    turn.status = 'running';
  },
  'response.queued': (turn) => {
    turn.status = 'queued';
  },
  'response.in_progress': (turn) => {
    turn.status = 'running';
  },
  'svc:queue.position': (turn, { position }) => {
    turn.queuePosition = position;
  },
  'response.output_item.added': (turn, { item }, now) => {
    const added = itemFrom(item, now);
    if (added) turn.items.push(added);
  },
  'response.output_item.done': (turn, { item }, now) => finishItem(turn, item, now),
  'response.output_text.delta': (turn, event) => addText(turn, 'text', event),
  'response.refusal.delta': (turn, event) => addText(turn, 'text', event),
  'response.reasoning_summary_text.delta': (turn, event) => addText(turn, 'reasoning', event),
  'response.mcp_call_arguments.delta': addArguments,
  'response.function_call_arguments.delta': addArguments,
  'response.mcp_call_arguments.done': (turn, event, now) => {
    const tool = toolOf(turn, event.item_id);
    if (!tool) return;
    tool.arguments = event.arguments;
    tool.startedAt = now; // until now the model wrote the arguments: the tool runs from here
  },
  'response.mcp_call.completed': (turn, { item_id }, now) => endTool(turn, item_id, 'ok', now),
  'response.mcp_call.failed': (turn, { item_id }, now) => endTool(turn, item_id, 'failed', now),
  'svc:tool_call.progress': (turn, { item_id, message, progress }) => {
    const tool = toolOf(turn, item_id);
    if (tool) tool.progress = message ?? (typeof progress === 'number' ? `${Math.round(progress * 100)} %` : '');
  },
};

/**
 * An item of the protocol as the page shows it; undefined where there is nothing to show.
 * @param {ProtocolEvent} item @param {number} now @returns {TurnItem | undefined}
 */
export function itemFrom(item, now) {
  const id = String(item.id ?? '');
  if (item.type === 'message') return { kind: 'text', id, text: textOf(item.content) };
  if (item.type === 'reasoning') return { kind: 'reasoning', id, text: textOf(item.summary) };
  if (item.type !== 'mcp_call' && item.type !== 'function_call' && item.type !== 'custom_tool_call') return undefined;
  return {
    kind: 'tool',
    id,
    server: item.server_label ?? '',
    name: item.name,
    arguments: item.arguments ?? item.input ?? '',
    output: item.output ?? null,
    error: errorText(item.error),
    status: statusOf(item),
    isOurs: item.type !== 'mcp_call',
    callId: item.call_id ?? '',
    startedAt: now,
    ms: undefined,
    progress: '',
  };
}

/** @param {Turn} turn @param {ProtocolEvent} done @param {number} now */
function finishItem(turn, done, now) {
  const at = turn.items.findIndex(({ id }) => id === done.id);
  const before = turn.items[at];
  const item = itemFrom(done, now);
  if (!item) return;
  if (!before) {
    turn.items.push(item);
  } else if (item.kind === 'tool' && before.kind === 'tool') {
    turn.items[at] = { ...item, startedAt: before.startedAt, ms: before.ms ?? now - before.startedAt, progress: '' };
  } else if (item.kind === before.kind && item.kind !== 'tool' && item.text !== '') {
    turn.items[at] = item;
  }
}

/** @param {Turn} turn @param {'text' | 'reasoning'} kind @param {ProtocolEvent} event */
function addText(turn, kind, { item_id: id, delta }) {
  const item = turn.items.find((one) => one.id === id);
  if (item && item.kind !== 'tool') item.text += delta;
  else turn.items.push({ kind, id, text: delta });
}

/** @param {Turn} turn @param {ProtocolEvent} event */
function addArguments(turn, { item_id, delta }) {
  const tool = toolOf(turn, item_id);
  if (tool) tool.arguments += delta;
}

/** @param {Turn} turn @param {string} id @returns {ToolItem | undefined} */
function toolOf(turn, id) {
  const item = turn.items.find((one) => one.id === id);
  return item?.kind === 'tool' ? item : undefined;
}

/** @param {Turn} turn @param {string} id @param {ToolItem['status']} status @param {number} now */
function endTool(turn, id, status, now) {
  const tool = toolOf(turn, id);
  if (!tool) return;
  tool.status = status;
  tool.ms = now - tool.startedAt;
}

/** @param {Turn} turn @param {Record<string, any>} response @param {number} now */
function endTurn(turn, response, now) {
  turn.usage = response.usage ?? undefined;
  turn.status = response.status === 'failed' || response.status === 'incomplete' ? response.status : 'completed';
  if (turn.status === 'failed')
    turn.error = { code: response.error?.code ?? null, message: response.error?.message ?? 'The turn failed.' };
  if (turn.status === 'incomplete') turn.reason = response.incomplete_details?.reason ?? '';
  close(turn, now);
}

/** @param {Turn} turn @param {number} now */
function close(turn, now) {
  turn.ms = now - turn.startedAt;
  for (const item of turn.items)
    if (item.kind === 'tool' && item.status === 'running') item.status = item.isOurs ? 'ok' : 'stopped';
}

/** @param {ProtocolEvent} item @returns {ToolItem['status']} */
function statusOf({ status, error }) {
  if (error || status === 'failed') return 'failed';
  if (status === 'in_progress') return 'running';
  return status === 'incomplete' ? 'stopped' : 'ok';
}

/** @param {unknown} error @returns {string | null} */
function errorText(error) {
  if (!error) return null;
  if (typeof error === 'string') return error;
  const { content, message } = /** @type {{ content?: unknown, message?: string }} */ (error);
  return message ?? (textOf(content) || JSON.stringify(error));
}

/** The text of an item's parts. @param {unknown} parts */
export function textOf(parts) {
  if (typeof parts === 'string') return parts;
  if (!Array.isArray(parts)) return '';
  return parts.map(({ text, refusal }) => text ?? refusal ?? '').join('');
}

/**
 * The turns of a conversation from its items, oldest first. An item before the first message of the user begins a turn without one.
 * @param {readonly Record<string, any>[]} items @returns {Turn[]}
 */
export function turnsOf(items) {
  /** @type {Turn[]} */
  const turns = [];
  for (const item of items) {
    if (item.type === 'message' && item.role === 'user') {
      turns.push(newTurn(textOf(item.content), { status: 'completed' }));
      continue;
    }
    const turn = turns.at(-1) ?? newTurn('', { status: 'completed' });
    if (turns.length === 0) turns.push(turn);
    if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') giveOutput(turn, item);
    else if (item.role !== 'tool') addItem(turn, item);
  }
  return turns;
}

/** @param {Turn} turn @param {Record<string, any>} item */
function addItem(turn, item) {
  const shown = itemFrom({ type: '', ...item }, 0);
  if (shown) turn.items.push(shown);
}

/** @param {Turn} turn @param {Record<string, any>} item */
function giveOutput(turn, item) {
  const call = turn.items.find((one) => one.kind === 'tool' && one.callId === item.call_id);
  if (call?.kind === 'tool') call.output = String(item.output ?? '');
}

/** What was said so far as messages of chat completions, for a request without a session. @param {readonly Turn[]} turns */
export function messagesOf(turns) {
  return turns.flatMap((turn) => {
    const answer = answerOf(turn);
    return [
      ...(turn.input === '' ? [] : [{ role: 'user', content: turn.input }]),
      ...(answer === '' ? [] : [{ role: 'assistant', content: answer }]),
    ];
  });
}

/** The same as input items of the Responses protocol. @param {readonly Turn[]} turns */
export function inputItemsOf(turns) {
  return messagesOf(turns).map(({ role, content }) => ({
    type: 'message',
    role,
    content: [{ type: role === 'user' ? 'input_text' : 'output_text', text: content }],
  }));
}
