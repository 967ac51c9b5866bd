import { record } from './trace.js';

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
 * @property {'running' | 'ok' | 'failed' | 'stopped' | 'waiting' | 'approved' | 'denied'} status
 *   the last three are of a call that a person decides about
 * @property {string} approvalId of the request for approval; empty if nobody was asked
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
 * @property {Decision[]} decisions about its calls, which the next request sends
 * @property {import('./trace.js').TurnFacts | undefined} facts what the server keeps of it
 * @property {number} version grows with each change
 *
 * @typedef {object} Decision a person's decision, as an item of the protocol
 * @property {'mcp_approval_response'} type
 * @property {string} approval_request_id
 * @property {boolean} approve
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
    decisions: [],
    facts: undefined,
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
  const waiting = waitingCalls(turn).length;
  if (waiting > 0) return `${waiting === 1 ? 'A tool call needs' : `${waiting} tool calls need`} your approval. ${answer}`;
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
  record(turn, event);
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
  turn.usage = sumOf(turn.usage, usage ?? undefined);
  turn.error = error ?? undefined;
  turn.reason = incomplete_details?.reason ?? '';
  turn.ms = performance.now() - turn.startedAt;
  if (status === 'completed') turn.decisions = [];
  for (const item of turn.items) {
    if (item.kind === 'tool' && item.status === 'running') item.status = item.isOurs ? 'ok' : 'stopped';
  }
}

/** @param {Usage | undefined} one @param {Usage | undefined} other */
function sumOf(one, other) {
  if (!one || !other) return one ?? other;
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
  };
}

/** The calls that wait for a person. @param {Turn} turn @returns {ToolItem[]} */
export function waitingCalls({ items }) {
  return items.filter((item) => item.kind === 'tool').filter(({ status }) => status === 'waiting');
}

/**
 * Takes a person's decision. Nothing runs before all calls are decided, so one request sends all
 * decisions.
 * @param {Turn} turn @param {ToolItem} call @param {boolean} approve
 * @returns {boolean} whether no call waits any more
 */
export function decideCall(turn, call, approve) {
  turn.version++;
  call.status = approve ? 'approved' : 'denied';
  turn.decisions.push({ type: 'mcp_approval_response', approval_request_id: call.approvalId, approve });
  return waitingCalls(turn).length === 0;
}

/**
 * Continues a turn whose calls were decided: events of another response follow. @param {Turn} turn
 */
export function continueTurn(turn) {
  turn.version++;
  turn.status = 'sending';
  turn.sequence = -1;
  turn.error = undefined;
  turn.reason = '';
  turn.startedAt = performance.now() - (turn.ms ?? 0); // without the time that the person took
  turn.ms = undefined;
}

/**
 * The server has denied calls that were approved here, for example as their time was over.
 * @param {Turn} turn
 */
export function denyDecided(turn) {
  turn.version++;
  for (const decision of turn.decisions) decision.approve = false;
  for (const item of turn.items) if (item.kind === 'tool' && item.status === 'approved') item.status = 'denied';
}

/**
 * Applies an event of a later turn to an earlier one. A message overtakes the calls that wait, and
 * denies them; but if it is a line that approves them, they run in its turn.
 * @param {Turn} turn @param {ProtocolEvent} event
 */
export function applyToEarlier(turn, { type, item: { approval_request_id: approved } = {} }) {
  const chosen = turn.status === 'completed' ? turn.decisions.map((decision) => decision.approval_request_id) : [];
  for (const item of turn.items) {
    if (item.kind !== 'tool') continue;
    const isOvertaken = type === 'response.created' && (item.status === 'waiting' || chosen.includes(item.approvalId));
    const isApproved = item.status === 'denied' && item.approvalId === approved;
    if (!isOvertaken && !isApproved) continue;
    turn.version++;
    item.status = isApproved ? 'approved' : 'denied';
  }
}

/**
 * Shows the calls that wait in a stored turn, whose items do not say so.
 * @param {Turn} turn the last one @param {readonly { id: string, tool?: string, arguments?: string
 *   }[]} approvals
 */
export function addWaiting(turn, approvals) {
  turn.version++;
  for (const { id, tool = '', arguments: text = '' } of approvals) {
    const [server = '', name = ''] = tool.split(/\/(.*)/);
    const item = itemFrom({ type: 'mcp_approval_request', id, server_label: server, name, arguments: text });
    const isSame = (/** @type {TurnItem} */ one) =>
      one.kind === 'tool' && one.status === 'stopped' && one.server === server && one.name === name && one.arguments === text;
    const at = turn.items.findIndex(isSame);
    if (item) turn.items.splice(at < 0 ? turn.items.length : at, at < 0 ? 0 : 1, item);
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
    if (added) addItem(turn, added);
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
  if (!['mcp_call', 'mcp_approval_request', 'function_call', 'custom_tool_call'].includes(type)) return undefined;
  return {
    kind: 'tool',
    id,
    server: item.server_label ?? '',
    name: item.name,
    arguments: item.arguments ?? item.input ?? '',
    output: item.output ?? null,
    error: error ? textOf(error.content) || error.message || JSON.stringify(error) : null,
    status: statusOf(item),
    isOurs: !type.startsWith('mcp_'),
    approvalId: type === 'mcp_approval_request' ? id : (item.approval_request_id ?? ''),
    callId: item.call_id ?? '',
    startedAt: performance.now(),
    ms: undefined,
    progress: '',
  };
}

/**
 * Adds an item. A call that was approved takes the place of the request for approval. @param {Turn}
 * turn @param {TurnItem} item
 */
function addItem({ items }, item) {
  const asked = (/** @type {TurnItem} */ one) =>
    item.kind === 'tool' && item.approvalId !== '' && isAskedBy(one, item.approvalId);
  const at = items.findIndex(asked);
  if (at < 0) items.push(item);
  else items[at] = item;
}

/** @param {TurnItem} item @param {string} approvalId */
function isAskedBy(item, approvalId) {
  return item.kind === 'tool' && item.approvalId === approvalId;
}

/** @param {Turn} turn @param {ProtocolEvent} done */
function finishItem(turn, done) {
  const item = itemFrom(done);
  const at = turn.items.findIndex(({ id }) => id === done.id);
  const before = turn.items[at];
  if (!item) return;
  if (!before) {
    addItem(turn, item);
  } else if (item.kind === 'tool' && before.kind === 'tool') {
    const ms = before.ms ?? performance.now() - before.startedAt;
    turn.items[at] = { ...item, ms: item.status === 'waiting' ? undefined : ms };
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
function statusOf({ type, status, error }) {
  if (type === 'mcp_approval_request') return 'waiting';
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
