import type { Failure } from '@plugboard/kernel';
import { invalidRequest, type ProtocolError, rateLimited, serviceError, unavailable } from './errors.js';

const NO_RETRY = { 'x-should-retry': 'false' };

/**
 * What a caller is told of a turn that has no answer, or of a session that could not do what was asked: as a status while the head is not sent, and
 * from then on as an error frame with the same object.
 *
 * @param stateful whether the turn belonged to a session. Clients ask again after a 502 by themselves: they are told not to where
 * that could do something twice.
 */
export function turnFailureError(failure: Failure, stateful: boolean): ProtocolError {
  const { code, message } = failure;
  switch (code) {
    case 'invalid_request':
      return invalidRequest(message, { param: failure.param ?? null });
    case 'overloaded':
    case 'draining':
      return unavailable(code, message, retryAfter(failure));
    case 'context_length_exceeded':
      return invalidRequest(message, { param: 'messages', code });
    case 'rate_limited':
      return rateLimited(message, (failure.retryAfter ?? 1) * 1000);
    case 'conversation_not_found':
      return invalidRequest(message, { status: 404, code });
    case 'session_full':
    case 'conversation_exists':
      // Clients repeat a 409 by themselves, and would be told the same.
      return invalidRequest(message, { status: 409, code, headers: NO_RETRY });
    case 'turn_interrupted':
    case 'turn_cancelled':
    case 'session_deleted':
      // Neither a 409 nor a 5xx: clients would repeat those, and the repetition would interrupt the newer turn, or do again what someone ended.
      return invalidRequest(message, { code, headers: NO_RETRY });
    case 'session_busy':
      return invalidRequest(message, { status: 409, code, headers: retryAfter(failure) });
    case 'model_failed':
    case 'timed_out':
    case 'crashed':
    case 'store_failed':
    case 'stopped':
    case 'session_quarantined':
    case 'abandoned': // nobody is there to read it
      return serviceError(502, message, failure.toolsRan || stateful ? NO_RETRY : {});
  }
}

/** Whole seconds, one at least. */
function retryAfter({ retryAfter = 1 }: Failure): Readonly<Record<string, string>> {
  return { 'retry-after': String(Math.max(1, Math.ceil(retryAfter))) };
}
