import { isUtf8 } from 'node:buffer';
import { type BusyMode, callerId } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';
import { headerLines } from './headers.js';

/** Makes the error for a header: it becomes a part of the protocol of the route. */
export type InvalidHeader = (header: string, why: string) => Error;

/**
 * Parses the header `Idempotency-Key`; undefined if absent, and for a caller without an identity:
 * what it repeats cannot be told from the requests of others (S-58).
 *
 * @throws the error for anything but 1 to 255 characters of printable ASCII.
 */
export function idempotencyKeyOf(
  request: Pick<HttpRequest, 'headers' | 'rawHeaders' | 'principal'>,
  invalid: InvalidHeader,
): string | undefined {
  const key = onlyValue(request, 'Idempotency-Key', invalid);
  if (key === undefined) return undefined;
  if (/^[ -~]{1,255}$/.test(key)) return callerId(request.principal) === undefined ? undefined : key;
  throw invalid('Idempotency-Key', 'expected 1 to 255 characters of printable ASCII');
}

/** What `X-Session-Busy` may say. */
const BUSY_MODES: readonly BusyMode[] = ['enqueue', 'reject', 'interrupt'];

/**
 * Parses `X-Session-Busy`: what to do if the session is busy.
 *
 * @throws the error for an unknown value.
 */
export function busyModeOf({ headers }: Pick<HttpRequest, 'headers'>, invalid: InvalidHeader): BusyMode | undefined {
  const wanted = headers['x-session-busy'];
  if (wanted === undefined || wanted === '') return undefined;
  const mode = BUSY_MODES.find((one) => one === wanted);
  if (mode) return mode;
  throw invalid('X-Session-Busy', `expected one of ${BUSY_MODES.join(', ')}`);
}

/**
 * The header `X-Session-Id`, decoded as UTF-8: Node decodes headers as Latin-1.
 *
 * @throws the error for a header that was sent twice or is not valid UTF-8.
 */
export function sessionHeaderOf(
  request: Pick<HttpRequest, 'headers' | 'rawHeaders'>,
  invalid: InvalidHeader,
): string | undefined {
  const value = onlyValue(request, 'X-Session-Id', invalid);
  if (value === undefined) return undefined;
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) throw invalid('X-Session-Id', 'it is not valid UTF-8');
  return bytes.toString('utf8');
}

function onlyValue(
  request: Pick<HttpRequest, 'headers' | 'rawHeaders'>,
  header: string,
  invalid: InvalidHeader,
): string | undefined {
  const name = header.toLowerCase();
  if (request.headers[name] === undefined) return undefined;
  const [value, ...others] = headerLines(request, name);
  if (others.length > 0) throw invalid(header, 'the header was sent more than once');
  return value;
}
