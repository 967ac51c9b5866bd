import { itemFrom, nameOf } from './turn-items.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn-facts.js').NestedFacts} NestedFacts */
/** @typedef {import('./turn.js').ToolItem} ToolItem */
/** @typedef {import('./turn.js').TurnItem} TurnItem */
/** @typedef {import('./turn.js').Usage} Usage */

/**
 * @typedef {object} NestedTurn the turn of an agent that a tool call asks: a part of the card of
 *   that call
 * @property {string} agent
 * @property {NestedStep[]} steps
 * @property {Usage | undefined} usage with that of the turns inside, once it has ended
 * @property {string} end why it ended; empty while it runs or if that is not known
 *
 * @typedef {object} NestedStep a model call, and what came of it
 * @property {string} connection
 * @property {number | undefined} ms
 * @property {TurnItem[]} items texts, as far as they were seen live, and tool calls
 */

/** Ends of a turn that are not worth a word. */
const USUAL_ENDS = ['stop', 'tool_calls'];

/**
 * Applies `svc:nested`. @param {{ items: TurnItem[] }} turn @param {ProtocolEvent} nestedEvent
 */
export function applyNested({ items }, { item_id: id, agent, event }) {
  const asking = callIn(items, id);
  if (asking) APPLY[event.type]?.(nestedOf(asking, agent), event);
}

/** @type {Record<string, (nested: NestedTurn, event: ProtocolEvent) => void>} */
const APPLY = {
  step: (nested, { step, connection }) => {
    stepAt(nested, step - 1).connection = connection;
  },
  text: (nested, { text }) => {
    const { items } = lastStep(nested);
    const last = items.at(-1);
    if (last?.kind === 'text') last.text += text;
    else items.push({ kind: 'text', id: '', text });
  },
  tool_call: (nested, call) => addCall(lastStep(nested).items, { ...call, status: 'in_progress' }),
  tool_result: ({ steps }, { id, is_error }) => {
    for (const { items } of steps) {
      const call = callIn(items, id);
      if (call) call.status = is_error ? 'failed' : 'ok';
    }
  },
  end: (nested, { reason }) => {
    nested.end = USUAL_ENDS.includes(reason) ? '' : reason;
    for (const { items } of nested.steps)
      for (const item of items) if (item.kind === 'tool' && item.status === 'running') item.status = 'stopped';
  },
};

/**
 * Adds what the server says of the turn that a call started: all of it but the texts. @param
 * {ToolItem} asking @param {NestedFacts} facts
 */
export function takeNestedFacts(asking, { agent, usage, steps, calls }) {
  const nested = nestedOf(asking, agent);
  nested.usage = usage ?? undefined;
  for (const [index, { connection, duration_ms: ms }] of steps.entries())
    Object.assign(stepAt(nested, index), { connection, ms: ms ?? undefined });
  for (const { step, item_id: id, duration_ms: ms, nested: inner, ...facts } of calls) {
    const call = addCall(stepAt(nested, Math.max(0, step - 1)).items, { ...facts, id: id ?? '' });
    if (call) call.ms = ms ?? undefined;
    if (call && inner) takeNestedFacts(call, inner);
  }
}

/**
 * What runs in the turn of a call at the moment, in one line. @param {ToolItem} asking @returns
 * {string}
 */
export function activityOf({ nested }) {
  const last = nested?.steps.at(-1)?.items.at(-1);
  if (last?.kind === 'text') return last.text.trim().split('\n').at(-1) ?? '';
  if (last?.kind !== 'tool') return '';
  const inner = activityOf(last);
  return [nameOf(last), ...(inner === '' ? [] : [inner])].join(' › ');
}

/** @param {ToolItem} asking @param {string} agent */
function nestedOf(asking, agent) {
  asking.nested ??= { agent, steps: [], usage: undefined, end: '' };
  return asking.nested;
}

/** @param {NestedTurn} nested @param {number} index @returns {NestedStep} */
function stepAt({ steps }, index) {
  while (steps.length <= index) steps.push({ connection: '', ms: undefined, items: [] });
  return /** @type {NestedStep} */ (steps[index]);
}

/** @param {NestedTurn} nested */
function lastStep(nested) {
  return stepAt(nested, Math.max(0, nested.steps.length - 1));
}

/**
 * Adds a call, or says how it is now. @param {TurnItem[]} items @param {Record<string, any>} said
 */
function addCall(items, said) {
  const call = itemFrom({ ...said, type: 'mcp_call' });
  const known = items.find(({ kind, id }) => kind === 'tool' && id === call?.id);
  if (known?.kind === 'tool' && call?.kind === 'tool') known.status = call.status;
  else if (call) items.push(call);
  const added = known ?? call;
  return added?.kind === 'tool' ? added : undefined;
}

/**
 * A call of these items, or of a turn that one of them started. @param {TurnItem[]} items @param
 * {string} id @returns {ToolItem | undefined}
 */
function callIn(items, id) {
  for (const item of items) {
    if (item.kind !== 'tool') continue;
    if (item.id === id) return item;
    for (const step of item.nested?.steps ?? []) {
      const found = callIn(step.items, id);
      if (found) return found;
    }
  }
  return undefined;
}
