import { hash, timingSafeEqual } from 'node:crypto';

/**
 * What is kept of a token, and what it is looked up by: its SHA-256, as 64 hexadecimal digits. A slow hash would protect nothing, for tokens cannot be
 * guessed, and would let anybody keep the server busy.
 */
export function digestOf(token: string): string {
  return hash('sha256', token, 'hex');
}

/** Whether two digests are the same, in a time that does not tell how much of them is. */
export function sameDigest(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one, 'latin1'), Buffer.from(other, 'latin1'));
}
