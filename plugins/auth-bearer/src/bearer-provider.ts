import type { AuthProvider, AuthResult, Clock, Credentials } from '@plugboard/kernel';
import { digestOf, sameDigest } from './digest.js';
import type { KnownToken } from './known-token.js';
import { LONGEST } from './plain-token.js';
import { claimsForm, faultOfForm } from './token-format.js';

/** Where tokens are looked up. It is asked for digests only: nothing that a caller wrote gets this far. */
export interface TokenTable {
  /** @param digest 64 hexadecimal digits. */
  find(digest: string): KnownToken | undefined;
}

/**
 * Tells callers by their token. What begins with `svc` is a token of ours, or none at all; anything else that is not known here may be another provider's.
 *
 * 1. What is too long, or has not the form and the checksum that it claims to have, is refused.
 * 2. It is looked up by its SHA-256, and the digests are compared in constant time.
 * 3. It must not be revoked, nor have expired.
 */
export class BearerProvider implements AuthProvider {
  readonly #tokens: TokenTable;
  readonly #clock: Clock;
  readonly #used: (token: KnownToken) => void;

  /** @param used is told of each token that somebody was let in with. */
  constructor(tokens: TokenTable, clock: Clock, used: (token: KnownToken) => void) {
    this.#tokens = tokens;
    this.#clock = clock;
    this.#used = used;
  }

  authenticate({ bearer }: Credentials): AuthResult | undefined {
    const claims = claimsForm(bearer);
    if (Buffer.byteLength(bearer) > LONGEST) return claims ? { refused: 'a malformed token' } : undefined;
    const fault = claims ? faultOfForm(bearer) : undefined;
    if (fault !== undefined) return { refused: fault };

    const digest = digestOf(bearer);
    const token = this.#tokens.find(digest);
    if (token === undefined || !sameDigest(token.sha256, digest)) return claims ? { refused: 'an unknown token' } : undefined;

    if ('refused' in token.answer) return token.answer;
    if (token.expiresAt <= this.#clock.now()) return { refused: `the token ${token.id} has expired` };
    this.#used(token);
    return token.answer;
  }
}
