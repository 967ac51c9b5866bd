import type { ModelError } from '@plugboard/kernel';
import type { ErrorCause } from './error-object.js';

/** Codes of errors that a retry cannot help, whatever the status. */
const PERMANENT =
  /insufficient_quota|billing|payment|insufficient_balance|balance_not_enough|invalid_api_key|api_key_invalid|authentication|permission|not_found|invalid_request|invalid_argument|bad_request|context_length|exceed_context_size|content_filter|content_policy/;

/** Codes of errors that may pass soon. */
const TRANSIENT =
  /overload|rate_?limit|too_?many_?requests|throttl|unavailable|time_?d?_?out|deadline_exceeded|resource_exhausted|server_error|^server|internal|api_error|upstream|bad_gateway|network|capacity|busy|aborted|stream_read|not_?ready/;

/** The same in a message without codes. */
const TRANSIENT_TEXT = /overloaded|try (again|later)|retry|temporarily|rate limit|too many requests|at capacity|timed? ?out/i;

/** MiniMax's numbers: unknown, timeout, rate limits, internal errors. */
const TRANSIENT_NUMBERS: ReadonlySet<string> = new Set(['1000', '1001', '1002', '1013', '1024', '1033', '1039', '2045', '2056']);

const CONTEXT_LENGTH =
  /context_length_exceeded|exceed_context_size|maximum context length|context (window|length|size)|prompt is too long|input is too long|too many (input )?tokens|exceeds? the (model's )?max(imum)?( number of)? (input |context |prompt )?(tokens|length)|(prompt|input) (token count|length|tokens?).{0,40}exceed|reduce the length/i;

/** Whether a status describes a condition that may pass soon. 498 is Groq's "capacity exceeded". */
export function isTransientStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status === 498 || status >= 500;
}

/** Whether an error may pass soon, as far as it says. */
export function isTransient({ status, words }: ErrorCause, text: string): boolean {
  const codes = words.join(' ');
  if (PERMANENT.test(codes)) return false;
  if (status !== undefined) return isTransientStatus(status);
  if (words.length > 0) return TRANSIENT.test(codes) || words.some((word) => TRANSIENT_NUMBERS.has(word));
  return TRANSIENT_TEXT.test(text);
}

/** Whether the conversation is too long for the model, not for a limit of tokens a minute. */
export function isContextLength({ status, words }: ErrorCause, text: string): boolean {
  if (status === 429 || words.some((word) => /rate_?limit/.test(word))) return false;
  return CONTEXT_LENGTH.test(text) || words.some((word) => CONTEXT_LENGTH.test(word));
}

/** Whether the credentials are at fault. Gemini says so with status 400. */
export function isCredentials({ status, words }: ErrorCause, text: string): boolean {
  if (status === 401) return true;
  if (status !== 400 && status !== 403) return false;
  return words.some((word) => /api_key/.test(word)) || /\bapi[ _-]?key\b/i.test(text);
}

const CONTENT_FILTER = /content_?(filter|policy|management)|moderation_blocked|data_inspection_failed/;
const OVERLOADED = /overload|at_capacity|capacity_exceeded/;
const RATE_LIMIT = /rate_?limit|too_?many_?requests|throttl|resource_?exhausted|insufficient_quota|quota_exceeded/;
const INVALID_REQUEST = /invalid_request|invalid_argument|bad_request/;

/** Statuses that describe the request and not the connection. */
const REQUEST_FAULTS: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Whether a status describes the request and not the connection. */
export function isRequestFault(status: number | undefined): boolean {
  return status !== undefined && REQUEST_FAULTS.has(status);
}

/** The kind of an error by its codes, or a status with one meaning. A bare 400 may be anything. */
export function kindOf(cause: ErrorCause, text: string): ModelError['code'] {
  const { status, words } = cause;
  const says = (pattern: RegExp) => words.some((word) => pattern.test(word));
  if (isContextLength(cause, text)) return 'context_length_exceeded';
  if (says(CONTENT_FILTER)) return 'content_filter';
  if (status === 429 || says(RATE_LIMIT)) return 'rate_limited';
  if (status === 529 || status === 498 || says(OVERLOADED)) return 'overloaded';
  return (status === undefined || isRequestFault(status)) && says(INVALID_REQUEST) ? 'invalid_request' : undefined;
}
