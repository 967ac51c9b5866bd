import type { Failure } from '@plugboard/kernel/contracts';
import { retryAfterHeaders } from '@plugboard/transport-http';
import { MessagesError } from './messages-error.js';

/** Seconds. Clients wait no longer by themselves. */
const MAX_WAIT = 60;

const NO_RETRY = { 'x-should-retry': 'false' };

/**
 * Converts the failure of a turn to an error.
 *
 * @param stateful whether the turn belonged to a session: clients repeat errors of 500 and above by
 *   themselves, and `x-should-retry` stops them where that could repeat an effect.
 * @param pathOf the path in the request of a field that the runtime names.
 */
export function turnFailureError(
  failure: Failure,
  stateful: boolean,
  pathOf: (param: string) => string = (param) => param,
): MessagesError {
  const { code, message } = failure;
  switch (code) {
    case 'invalid_request':
      return invalid(failure.param === undefined ? message : `${pathOf(failure.param)}: ${message}`, code);
    case 'content_filter':
      return invalid(message, code);
    case 'forbidden':
      return new MessagesError(403, 'permission_error', message, { code });
    case 'context_length_exceeded':
      // Clients look for these words, and compact the conversation.
      return invalid(`prompt is too long: ${message}`, code);
    case 'overloaded':
    case 'draining':
      return new MessagesError(529, 'overloaded_error', message, { code, headers: waitOf(failure) });
    case 'rate_limited':
      return new MessagesError(429, 'rate_limit_error', message, { code, headers: waitOf(failure) });
    case 'insufficient_quota':
      return new MessagesError(429, 'rate_limit_error', message, { code, headers: { ...budgetWaitOf(failure), ...NO_RETRY } });
    case 'conversation_not_found':
    case 'approval_not_found':
      return new MessagesError(404, 'not_found_error', message, { code });
    case 'session_busy':
      return new MessagesError(409, 'invalid_request_error', message, { code, headers: waitOf(failure) });
    case 'session_full':
    case 'conversation_exists':
    case 'approval_pending':
    case 'approval_decided':
    case 'approval_expired':
    case 'quota_exceeded':
    case 'turn_interrupted':
    case 'turn_cancelled':
    case 'session_deleted':
      // Not 409 or 5xx, which clients repeat: they would get the same answer, or interrupt a newer
      // turn.
      return invalid(message, code);
    case 'lease_lost':
      return new MessagesError(502, 'api_error', message, { code, headers: effectsOf(failure) });
    case 'model_failed':
    case 'timed_out':
    case 'crashed':
    case 'store_failed':
    case 'stopped':
    case 'session_quarantined':
    case 'abandoned': // the caller has disconnected
      return new MessagesError(500, 'api_error', message, { code, headers: stateful ? NO_RETRY : effectsOf(failure) });
  }
}

function invalid(message: string, code: string): MessagesError {
  return new MessagesError(400, 'invalid_request_error', message, { code });
}

/** Until when a client should wait. Of a long wait its user decides, who is told of it. */
function waitOf(failure: Failure): Readonly<Record<string, string>> {
  const { retryAfter = 1 } = failure;
  return { ...retryAfterHeaders(retryAfter * 1000), ...(retryAfter > MAX_WAIT && NO_RETRY), ...effectsOf(failure) };
}

/** Until when a budget is spent, if it begins anew. */
function budgetWaitOf({ retryAfter }: Failure): Readonly<Record<string, string>> {
  return retryAfter === undefined ? {} : retryAfterHeaders(retryAfter * 1000);
}

function effectsOf({ toolsRan }: Failure): Readonly<Record<string, string>> {
  return toolsRan ? NO_RETRY : {};
}
