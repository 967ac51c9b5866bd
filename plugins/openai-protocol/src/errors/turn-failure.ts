import type { Failure } from '@plugboard/kernel/contracts';
import { retryAfterHeaders } from '@plugboard/transport-http';
import { invalidRequest, ProtocolError, rateLimited, serviceError, unavailable } from './errors.js';

/** Seconds. OpenAI's clients wait no longer. */
const MAX_CLIENT_WAIT = 60;
const NO_RETRY = { 'x-should-retry': 'false' };
/** Codes of failures at which a repeated request would fail again. */
const LASTING: ReadonlySet<Failure['code']> = new Set(['invalid_request', 'context_length_exceeded']);

/**
 * Converts the failure of a turn or a session operation to an error response. A stream whose head
 * was sent uses its body as an error frame.
 *
 * @param stateful whether the turn belonged to a session. Clients retry a 502 automatically;
 *   `x-should-retry` stops them where a retry could repeat an effect.
 * @param input the field of the request with the conversation.
 */
export function turnFailureError(failure: Failure, stateful: boolean, input = 'messages'): ProtocolError {
  const { code, message } = failure;
  const headers = { ...waitOf(failure), ...(failure.toolsRan && NO_RETRY) };
  // Whatever a model server reports, the run has failed: a 502, except for refused content.
  if (failure.isUpstream && code !== 'content_filter')
    return serviceError(502, message, { ...headers, ...((stateful || LASTING.has(code)) && NO_RETRY) });
  switch (code) {
    case 'invalid_request':
      return invalidRequest(message, { param: failure.param ?? null });
    case 'forbidden':
      return serviceError(403, message);
    case 'overloaded':
    case 'draining':
      return unavailable(code, message, { ...retryAfterHeaders(1000), ...headers });
    case 'context_length_exceeded':
      return invalidRequest(message, { param: input, code });
    case 'content_filter':
      return invalidRequest(message, { code: 'content_policy_violation' });
    case 'rate_limited':
      return rateLimited(message, { ...retryAfterHeaders(1000), ...headers });
    case 'insufficient_quota':
      // A retry meets the same budget: the wait says when it begins anew.
      return new ProtocolError(429, { error: { message, type: code, param: null, code } }, { ...headers, ...NO_RETRY });
    case 'conversation_not_found':
    case 'approval_not_found':
      return invalidRequest(message, { status: 404, code });
    case 'session_full':
    case 'conversation_exists':
    case 'approval_pending':
    case 'approval_decided':
      // Clients retry a 409 automatically, and would get the same answer.
      return invalidRequest(message, { status: 409, code, headers: NO_RETRY });
    case 'approval_expired':
      return invalidRequest(message, { status: 410, code });
    case 'quota_exceeded':
      return new ProtocolError(507, { error: { message, type: 'server_error', param: null, code } }, NO_RETRY);
    case 'turn_interrupted':
    case 'turn_cancelled':
    case 'session_deleted':
      // Not a 409 or 5xx: clients retry those, and the retry would interrupt the newer turn or
      // repeat a cancelled one.
      return invalidRequest(message, { code, headers: NO_RETRY });
    case 'session_busy':
      return invalidRequest(message, { status: 409, code, headers: { ...retryAfterHeaders(1000), ...headers } });
    case 'lease_lost':
      // Nothing was stored: a retry waits behind what the other server runs.
      return new ProtocolError(502, { error: { message, type: 'server_error', param: null, code } }, headers);
    case 'model_failed':
    case 'timed_out':
    case 'crashed':
    case 'store_failed':
    case 'stopped':
    case 'session_quarantined':
    case 'abandoned': // the caller has disconnected
      return serviceError(502, message, { ...headers, ...(stateful && NO_RETRY) });
  }
}

/** Whether the same request may succeed later, and would not run tools again. */
export function isTemporary({ code, retryAfter, toolsRan }: Failure): boolean {
  const isModelBusy = code === 'model_failed' && retryAfter !== undefined;
  return (isModelBusy || code === 'rate_limited' || code === 'overloaded') && !toolsRan;
}

/** The message for a stream, which has no headers: with the wait, in the words of the reference. */
export function messageWithWait(failure: Failure): string {
  const { message, retryAfter } = failure;
  if (!isTemporary(failure) || retryAfter === undefined) return message;
  return `${message} Please try again in ${Math.max(1, Math.ceil(retryAfter))}s.`;
}

/** The wait that the failure asks for. Clients ignore more than a minute: they must not retry. */
function waitOf({ retryAfter }: Failure): Readonly<Record<string, string>> {
  if (retryAfter === undefined) return {};
  return { ...retryAfterHeaders(retryAfter * 1000), ...(retryAfter > MAX_CLIENT_WAIT && NO_RETRY) };
}
