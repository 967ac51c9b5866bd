import { isRunning, newTurn } from './turn.js';
import { addItem, itemFrom, textOf } from './turn-items.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */

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
          images: imagesOf(item.content),
        }),
      );
      continue;
    }
    const turn = turns.at(-1) ?? newTurn('', { status: 'completed', isKept: true, number: numberOf(item.id) });
    if (turns.length === 0) turns.push(turn);
    turn.lastNumber = Math.max(turn.lastNumber, numberOf(item.id));
    const shown = item.role === 'tool' ? undefined : itemFrom(item);
    if (shown) addItem(turn, shown);
    const call = turn.items.find((one) => one.kind === 'tool' && one.callId !== '' && one.callId === item.call_id);
    if (call?.kind === 'tool' && call !== shown) call.output = String(item.output ?? '');
  }
  applyDecisions(turns, items);
  return turns;
}

/** The URLs of the images of a message. @param {unknown} parts */
function imagesOf(parts) {
  return Array.isArray(parts) ? parts.flatMap(({ type, image_url }) => (type === 'input_image' ? [String(image_url)] : [])) : [];
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
 * Shows what was decided about calls, wherever the decision came from.
 * @param {readonly Turn[]} turns @param {readonly ProtocolEvent[]} items of the session
 */
export function applyDecisions(turns, items) {
  const decided = new Map(
    items.filter(({ type }) => type === 'mcp_approval_response').map((one) => [one.approval_request_id, one]),
  );
  for (const turn of turns) {
    for (const item of turn.items) {
      const decision = item.kind === 'tool' && UNDECIDED.includes(item.status) ? decided.get(item.approvalId) : undefined;
      if (item.kind !== 'tool' || !decision) continue;
      item.status = decision.approve ? 'approved' : 'denied';
      turn.version++;
    }
  }
}

/**
 * States of a card that a decision changes. A later message counts as a denial, until it is known.
 */
const UNDECIDED = ['waiting', 'approved', 'denied'];
