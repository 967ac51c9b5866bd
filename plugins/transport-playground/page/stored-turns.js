import { isRunning, newTurn } from './turn.js';
import { itemFrom, textOf } from './turn-items.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./turn.js').TurnItem} TurnItem */

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
      turns.push(
        newTurn(textOf(item.content), {
          status: 'completed',
          isKept: true,
          number: numberOf(item.id),
          lastNumber: numberOf(item.id),
        }),
      );
      continue;
    }
    const turn = turns.at(-1) ?? newTurn('', { status: 'completed', isKept: true, number: numberOf(item.id) });
    if (turns.length === 0) turns.push(turn);
    turn.lastNumber = Math.max(turn.lastNumber, numberOf(item.id));
    const shown = item.role === 'tool' ? undefined : itemFrom(item);
    if (shown) turn.items.push(shown);
    const call = turn.items.find((one) => one.kind === 'tool' && one.callId !== '' && one.callId === item.call_id);
    if (call?.kind === 'tool' && call !== shown) call.output = String(item.output ?? '');
  }
  return turns;
}

/**
 * The number of a turn in its session, which the ids of its items contain.
 * @param {string} id for example `msg_0c3f_12_0`
 */
export function numberOf(id) {
  return Number(/^[a-z]+_[^_]+_(\d+)_/.exec(id)?.[1] ?? 0);
}

/**
 * Puts what the tab remembers between the turns that the server has.
 * @param {readonly Turn[]} stored oldest first @param {readonly Turn[]} remembered
 */
export function withRemembered(stored, remembered) {
  const turns = [...stored];
  for (const turn of remembered) {
    const { number, after, input, responseId } = turn;
    turn.startedAt = performance.now(); // the clock of the earlier page is gone
    const continued = turn.isKept && turns.find((one) => one.number === number);
    if (continued) Object.assign(continued, { status: 'running', responseId });
    // a running one may have ended meanwhile, and a cut one may have arrived after all
    const isStored = (/** @type {Turn} */ one) => one.number > after && one.input === input;
    if (continued || ((isRunning(turn) || turn.isCut) && stored.some(isStored))) continue;
    const at = turns.findIndex((one) => one.number > after);
    turns.splice(at < 0 ? turns.length : at, 0, turn);
  }
  return turns;
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
