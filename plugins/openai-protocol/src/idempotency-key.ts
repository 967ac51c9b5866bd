import { hash } from 'node:crypto';
import type { HttpRequest } from '@plugboard/transport-http';
import { headerLines } from './headers.js';
import { invalidValue } from './request-errors.js';

const HEADER = 'idempotency-key';

/**
 * The key under which the caller may repeat the request; undefined where it sent none.
 * @throws ProtocolError 400 for a value that is no key: it has 1 to 255 characters of printable ASCII.
 */
export function parseIdempotencyKey(request: Pick<HttpRequest, 'rawHeaders'>): string | undefined {
  const [key, ...others] = headerLines(request, HEADER);
  if (key === undefined) return undefined;
  if (others.length === 0 && /^[ -~]{1,255}$/.test(key)) return key;
  const why = others.length > 0 ? 'the header was sent more than once' : 'expected 1 to 255 characters of printable ASCII';
  throw invalidValue('Idempotency-Key', why);
}

/** Equal for requests that ask for the same: the same values in the body, however it was written, and the same session. */
export function requestFingerprint(body: unknown, session: string | undefined): string {
  return hash('sha256', JSON.stringify([session ?? null, body], inOrder), 'base64');
}

/** Objects with their names in order: so one value has one text (as RFC 8785 has it). */
function inOrder(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
