import { applyNested } from './nested-turns.js';
import { endsTurn, endTurn, isRunning } from './turn.js';
import { takeProgress } from './turn-facts.js';
import { addItem, itemFrom } from './turn-items.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').TextItem} TextItem */
/** @typedef {import('./turn.js').ToolItem} ToolItem */
/** @typedef {import('./turn.js').Turn} Turn */

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
/** @type {Record<string, (turn: Turn, event: ProtocolEvent) => void>} */
const APPLY = {
  'response.created': (turn, { response }) => {
    turn.responseId = response.id;
    if (!turn.responses.includes(response.id)) turn.responses.push(response.id);
    setStatus(turn, 'running');
  },
  'response.queued': (turn) => setStatus(turn, 'queued'),
  'response.in_progress': (turn) => setStatus(turn, 'running'),
  'svc:queue.position': (turn, { position }) => {
    turn.queuePosition = position;
  },
  'svc:session.state': (turn, { turn: number }) => {
    turn.number ||= number;
    turn.lastNumber = number;
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
  'response.mcp_call.completed': (turn, event) => endTool(turn, event, 'ok'),
  'response.mcp_call.failed': (turn, event) => endTool(turn, event, 'failed'),
  'svc:turn.progress': takeProgress,
  'svc:nested': applyNested,
  'svc:tool_call.progress': (turn, event) => {
    const tool = toolOf(turn, event);
    if (tool) tool.progress = event.message ?? `${Math.round(event.progress * 100)} %`;
  },
};
/**
 * One that was stopped here does not run again: its events may arrive until the server knows.
 * @param {Turn} turn @param {'queued' | 'running'} status
 */
function setStatus(turn, status) {
  if (isRunning(turn)) turn.status = status;
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
    const status = before.status === 'unknown' ? 'unknown' : item.status;
    turn.items[at] = { ...item, ms: before.ms, status, nested: before.nested };
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
  if (tool && tool.status !== 'unknown') tool.status = status;
}
