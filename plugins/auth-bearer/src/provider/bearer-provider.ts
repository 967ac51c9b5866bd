import type { AuthProvider, AuthResult, Clock, Credentials } from '@plugboard/kernel';
import { MAX_SECRET_BYTES } from '../tokens/configured-secret.js';
import { digestOf, digestsEqual } from '../tokens/digest.js';
import type { KnownToken } from '../tokens/known-token.js';
import { isTokenLike, tokenProblem } from '../tokens/token-format.js';

/** Finds tokens by digest. Nothing that a caller wrote gets this far. */
export interface TokenLookup {
  /** @param digest 64 hexadecimal digits. */
  find(digest: string): KnownToken | undefined;
}

/**
 * Identifies callers by token. A value that begins with `svc` is an issued token or invalid; any other unknown value may belong to another
 * provider.
 *
 * 1. A value that is too long, or that begins with `svc` without the format and checksum of a token, is refused.
 * 2. It is looked up by its SHA-256, and the digests are compared in constant time.
 * 3. A revoked or expired token is refused.
 */
export class BearerProvider implements AuthProvider {
  readonly #tokens: TokenLookup;
  readonly #clock: Clock;
  readonly #onUse: (token: KnownToken) => void;

  /** @param onUse called with each accepted token. */
  constructor(tokens: TokenLookup, clock: Clock, onUse: (token: KnownToken) => void) {
    this.#tokens = tokens;
    this.#clock = clock;
    this.#onUse = onUse;
  }

  authenticate({ bearer }: Credentials): AuthResult | undefined {
    const isOurs = isTokenLike(bearer);
    if (Buffer.byteLength(bearer) > MAX_SECRET_BYTES) return isOurs ? { refused: 'a malformed token' } : undefined;
    const problem = isOurs ? tokenProblem(bearer) : undefined;
    if (problem !== undefined) return { refused: problem };

    const digest = digestOf(bearer);
    const token = this.#tokens.find(digest);
    if (token === undefined || !digestsEqual(token.sha256, digest)) return isOurs ? { refused: 'an unknown token' } : undefined;

    if ('refused' in token.result) return token.result;
    if (token.expiresAt <= this.#clock.now()) return { refused: `the token ${token.id} has expired` };
    this.#onUse(token);
    return token.result;
  }
}
