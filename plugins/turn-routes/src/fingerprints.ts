import { hash } from 'node:crypto';
import type { Principal } from '@plugboard/kernel';
import { callerId } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '@plugboard/transport-http';

/** A body of up to this many characters, which are more than those of a hash, identifies itself. */
const SHORT_BODY = 1024;

/**
 * Hashes a request. Equal for the same caller, bodies with equal values, in any key order, and the
 * same session (S-44).
 */
export function requestFingerprint(body: unknown, session: string | undefined, principal: Principal): string {
  return hash('sha256', JSON.stringify([callerId(principal) ?? null, session ?? null, body], sortKeys), 'base64');
}

/**
 * Identifies a request that its client may repeat while the first one runs: equal bytes of the same
 * caller join. A caller is known by the id of its credential, never by a name, which is for people
 * (S-44).
 *
 * @returns undefined for a caller without an identity. Its requests must not join.
 */
export function joinFingerprint({ principal, rawBody }: Pick<HttpRequest, 'principal' | 'rawBody'>): string | undefined {
  const caller = callerId(principal);
  if (caller === undefined) return undefined;
  const body = rawBody.length <= SHORT_BODY ? rawBody : hash('sha256', rawBody, 'base64');
  return `${caller.length} ${caller} ${body}`;
}

/** A hash of a session key for the log: identifies the conversation without revealing the key. */
export function sessionHash(key: string): string {
  return hash('sha256', key).slice(0, 16);
}

/** Sorts the keys of objects, so that equal values have equal texts (as in RFC 8785). */
function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
