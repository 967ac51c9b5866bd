import { hash, timingSafeEqual } from 'node:crypto';

/**
 * The SHA-256 of a token as 64 hexadecimal digits. Tokens are stored and looked up by it. A slow
 * hash would protect nothing, because tokens cannot be guessed, and would let anyone keep the
 * server busy.
 */
export function digestOf(token: string): string {
  return hash('sha256', token, 'hex');
}

/** Compares two digests in constant time. */
export function digestsEqual(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'));
}
