import { LOST } from './live.js';
import { endTurn } from './turn.js';

/** @typedef {import('./turn.js').Turn} Turn */

/** Errors after which it is not known how a turn ended. */
const UNKNOWN_ENDS = [LOST, 'invalid_api_key', 'response_not_found', 'response_events_expired'];

/**
 * Ends a turn whose last event did not arrive.
 * @param {Turn} turn @param {string | null} code @param {string} message
 */
export function failTurn(turn, code, message) {
  const isGone = code === 'response_not_found' || code === 'response_events_expired';
  if (isGone) turn.responseId = '';
  const text = 'The turn was cut off: the connection was lost, and the server no longer has its events.';
  endTurn(turn, { status: 'failed', error: isGone ? { code: LOST, message: text } : { code, message } });
  turn.isCut = UNKNOWN_ENDS.includes(code ?? '');
}
