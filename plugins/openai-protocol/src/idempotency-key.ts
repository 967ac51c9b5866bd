import { hash } from 'node:crypto';
import type { HttpRequest } from '@plugboard/transport-http';
import { headerLines } from './headers.js';
import { invalidValue } from './request-errors.js';

const HEADER = 'idempotency-key';

/**
 * Parses the header `Idempotency-Key`; undefined if absent.
 *
 * @throws ProtocolError 400 unless it has 1 to 255 characters of printable ASCII.
 */
export function parseIdempotencyKey(request: Pick<HttpRequest, 'rawHeaders'>): string | undefined {
  const [key, ...others] = headerLines(request, HEADER);
  if (key === undefined) return undefined;
  if (others.length === 0 && /^[ -~]{1,255}$/.test(key)) return key;
  const why = others.length > 0 ? 'the header was sent more than once' : 'expected 1 to 255 characters of printable ASCII';
  throw invalidValue('Idempotency-Key', why);
}

/** Hashes a request. Equal for bodies with equal values, in any key order, and the same session. */
export function requestFingerprint(body: unknown, session: string | undefined): string {
  return hash('sha256', JSON.stringify([session ?? null, body], sortKeys), 'base64');
}

/** Sorts the keys of objects, so that equal values have equal texts (as in RFC 8785). */
function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
