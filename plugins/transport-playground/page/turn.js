/**
 * @typedef {object} TextItem
 * @property {'text' | 'reasoning'} kind
 * @property {string} id
 * @property {string} text
 *
 * @typedef {object} ToolItem a tool call. The server runs it, or leaves it to the client
 *   (`isOurs`).
 * @property {'tool'} kind
 * @property {string} id
 * @property {string} server the tool's entry in the configuration; empty if unknown
 * @property {string} name
 * @property {string} arguments JSON text, perhaps incomplete
 * @property {string | null} output
 * @property {string | null} error
 * @property {'running' | 'ok' | 'failed' | 'stopped'} status
 * @property {boolean} isOurs
 * @property {string} callId of a call that is left to the client
 * @property {number} startedAt
 * @property {number | undefined} ms duration, if this page saw the call run
 * @property {string} progress the last progress message of the tool
 *
 * @typedef {TextItem | ToolItem} TurnItem
 *
 * @typedef {object} Usage
 * @property {number} input_tokens
 * @property {number} output_tokens
 * @property {number} total_tokens
 *
 * @typedef {object} Turn one message of the user, and everything it caused
 * @property {string} input
 * @property {TurnItem[]} items
 * @property {'sending' | 'queued' | 'running' | 'completed' | 'incomplete' | 'failed'} status
 * @property {number} queuePosition
 * @property {string} reason why it is incomplete
 * @property {{ code?: string | null, message: string } | undefined} error
 * @property {string} responseId
 * @property {number} sequence of the last applied event; -1 before the first
 * @property {Usage | undefined} usage
 * @property {number} startedAt
 * @property {number | undefined} ms duration, if this page saw the turn run
 * @property {number} version grows with each change
 *
 * @typedef {{ type: string, [field: string]: any }} ProtocolEvent an event or item of the Responses
 *   protocol
 */

const ENDS = ['response.completed', 'response.failed', 'response.incomplete'];

/** @param {string} input @param {Partial<Turn>} [fields] @returns {Turn} */
export function newTurn(input, fields) {
  return {
    input,
    items: [],
    status: 'sending',
    queuePosition: 0,
    reason: '',
    error: undefined,
    responseId: '',
    sequence: -1,
    usage: undefined,
    startedAt: performance.now(),
    ms: undefined,
    version: 0,
    ...fields,
  };
}

/** @param {ProtocolEvent} event */
export function endsTurn(event) {
  return ENDS.includes(event.type);
}

/** @param {Turn} turn */
export function isRunning({ status }) {
  return status === 'sending' || status === 'queued' || status === 'running';
}

/** The answer's text. @param {Turn} turn */
export function answerOf({ items }) {
  const texts = items.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
  return texts.join('\n\n').trim();
}

/** What a screen reader says at the end of a turn. @param {Turn} turn */
export function spokenTurn(turn) {
  const answer = answerOf(turn);
  if (turn.status === 'failed') return `The turn failed. ${turn.error?.message ?? ''}`;
  if (turn.status === 'incomplete') return `The turn was stopped. ${answer}`;
  return `Answer: ${answer.slice(0, 1000)}`;
}

/**
 * Applies one event. Events that were applied before are ignored: a resumed response may repeat
 * some.
 * @param {Turn} turn @param {ProtocolEvent} event
 */
export function applyEvent(turn, event) {
  const sequence = event.sequence_number ?? turn.sequence + 1;
  if (sequence <= turn.sequence) return;
  turn.sequence = sequence;
  turn.version++;
  APPLY[event.type]?.(turn, event);
  if (endsTurn(event)) endTurn(turn, event.response);
}

/**
 * Ends a turn.
 * @param {Turn} turn
 * @param {Record<string, any>} response of the last event, or its fields if there was none
 */
export function endTurn(turn, { status, usage, error, incomplete_details }) {
  turn.version++;
  turn.status = status;
  turn.usage = usage ?? undefined;
  turn.error = error ?? undefined;
  turn.reason = incomplete_details?.reason ?? '';
  turn.ms = performance.now() - turn.startedAt;
  for (const item of turn.items) {
    if (item.kind === 'tool' && item.status === 'running') item.status = item.isOurs ? 'ok' : 'stopped';
  }
}

/** @type {Record<string, (turn: Turn, event: ProtocolEvent) => void>} */
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
  'response.output_item.added': (turn, { item }) => {
    const added = itemFrom(item);
    if (added) turn.items.push(added);
  },
  'response.output_item.done': (turn, { item }) => finishItem(turn, item),
  'response.output_text.delta': (turn, event) => addText(turn, 'text', event),
  'response.refusal.delta': (turn, event) => addText(turn, 'text', event),
  'response.reasoning_summary_text.delta': (turn, event) => addText(turn, 'reasoning', event),
  'response.mcp_call_arguments.delta': addArguments,
  'response.function_call_arguments.delta': addArguments,
  'response.mcp_call_arguments.done': (turn, event) => {
    const tool = toolOf(turn, event);
    if (tool) tool.startedAt = performance.now(); // until now the model was writing the arguments
  },
  'response.mcp_call.completed': (turn, event) => endTool(turn, event, 'ok'),
  'response.mcp_call.failed': (turn, event) => endTool(turn, event, 'failed'),
  'svc:tool_call.progress': (turn, event) => {
    const tool = toolOf(turn, event);
    if (tool) tool.progress = event.message ?? `${Math.round(event.progress * 100)} %`;
  },
};

/**
 * An item of the protocol as the page shows it; undefined if it does not.
 * @param {ProtocolEvent} item @returns {TurnItem | undefined}
 */
function itemFrom(item) {
  const { type, id = '', error } = item;
  if (type === 'message') return { kind: 'text', id, text: textOf(item.content) };
  if (type === 'reasoning') return { kind: 'reasoning', id, text: textOf(item.summary) };
  if (!['mcp_call', 'function_call', 'custom_tool_call'].includes(type)) return undefined;
  return {
    kind: 'tool',
    id,
    server: item.server_label ?? '',
    name: item.name,
    arguments: item.arguments ?? item.input ?? '',
    output: item.output ?? null,
    error: error ? textOf(error.content) || error.message || JSON.stringify(error) : null,
    status: statusOf(item),
    isOurs: type !== 'mcp_call',
    callId: item.call_id ?? '',
    startedAt: performance.now(),
    ms: undefined,
    progress: '',
  };
}

/** @param {Turn} turn @param {ProtocolEvent} done */
function finishItem(turn, done) {
  const item = itemFrom(done);
  const at = turn.items.findIndex(({ id }) => id === done.id);
  const before = turn.items[at];
  if (!item) return;
  if (!before) {
    turn.items.push(item);
  } else if (item.kind === 'tool' && before.kind === 'tool') {
    const ms = before.ms ?? performance.now() - before.startedAt;
    turn.items[at] = { ...item, ms };
  } else if (item.kind !== 'tool' && item.text !== '') {
    turn.items[at] = item;
  }
}

/** @param {Turn} turn @param {TextItem['kind']} kind @param {ProtocolEvent} event */
function addText(turn, kind, { item_id: id, delta }) {
  const item = turn.items.find((one) => one.id === id);
  if (item && item.kind !== 'tool') item.text += delta;
  else turn.items.push({ kind, id, text: delta });
}

/** @param {Turn} turn @param {ProtocolEvent} event */
function addArguments(turn, event) {
  const tool = toolOf(turn, event);
  if (tool) tool.arguments += event.delta;
}

/** @param {Turn} turn @param {ProtocolEvent} event @returns {ToolItem | undefined} */
function toolOf(turn, { item_id }) {
  const item = turn.items.find(({ id }) => id === item_id);
  return item?.kind === 'tool' ? item : undefined;
}

/** @param {Turn} turn @param {ProtocolEvent} event @param {ToolItem['status']} status */
function endTool(turn, event, status) {
  const tool = toolOf(turn, event);
  if (!tool) return;
  tool.status = status;
  tool.ms = performance.now() - tool.startedAt;
}

/** @param {ProtocolEvent} item @returns {ToolItem['status']} */
function statusOf({ status, error }) {
  if (error || status === 'failed') return 'failed';
  if (status === 'in_progress') return 'running';
  return status === 'incomplete' ? 'stopped' : 'ok';
}

/** The text of an item's parts. @param {unknown} parts */
function textOf(parts) {
  if (!Array.isArray(parts)) return typeof parts === 'string' ? parts : '';
  return parts.map(({ text, refusal }) => text ?? refusal ?? '').join('');
}

/**
 * The turns of a stored conversation, oldest first.
 * @param {readonly ProtocolEvent[]} items oldest first. Those before the first message of the user
 *   form a turn without input.
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
    const shown = item.role === 'tool' ? undefined : itemFrom(item);
    if (shown) turn.items.push(shown);
    const call = turn.items.find((one) => one.kind === 'tool' && one.callId !== '' && one.callId === item.call_id);
    if (call?.kind === 'tool' && call !== shown) call.output = String(item.output ?? '');
  }
  return turns;
}

/** The conversation as messages of chat completions. @param {readonly Turn[]} turns */
export function messagesOf(turns) {
  return turns.flatMap((turn) => {
    const said = [
      { role: 'user', content: turn.input },
      { role: 'assistant', content: answerOf(turn) },
    ];
    return said.filter(({ content }) => content !== '');
  });
}

/** The conversation as input items of the Responses protocol. @param {readonly Turn[]} turns */
export function inputItemsOf(turns) {
  return messagesOf(turns).map(({ role, content }) => ({
    type: 'message',
    role,
    content: [{ type: role === 'user' ? 'input_text' : 'output_text', text: content }],
  }));
}
