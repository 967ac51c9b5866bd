import type { AuthProvider, AuthResult, Credentials, Principal } from '@plugboard/kernel';
import { inject } from '@plugboard/kernel/injection';
import { MAX_SECRET_BYTES } from '../tokens/configured-secret.js';
import { digestOf, digestsEqual } from '../tokens/digest.js';
import { isTokenLike, tokenProblem } from '../tokens/token-format.js';
import { BearerTokens } from './bearer-tokens.js';
import { type EphemeralToken, EphemeralTokens, narrowed } from './ephemeral-tokens.js';

/** How ephemeral tokens begin. */
const EPHEMERAL = 'svce_';

/**
 * Identifies callers by token. A value that begins with `svc` is an issued token or invalid; any
 * other unknown value may belong to another provider.
 *
 * 1. A value that is too long, or that begins with `svc` without the format and checksum of a
 *    token, is refused.
 * 2. It is looked up by its SHA-256, and the digests are compared in constant time.
 * 3. A revoked or expired token is refused.
 * 4. An ephemeral token is valid once, and for a connection that it opened as long as the token
 *    that it was issued for.
 */
export class BearerProvider implements AuthProvider {
  /** Asked by digest. Nothing that a caller wrote gets this far. */
  readonly #tokens: Pick<BearerTokens, 'find' | 'recordUse' | 'now'>;
  readonly #ephemeral: EphemeralTokens;
  /** The tokens of the callers that were identified here. */
  readonly #digests = new WeakMap<Principal, string>();

  constructor(
    @inject(BearerTokens) tokens: Pick<BearerTokens, 'find' | 'recordUse' | 'now'>,
    @inject(EphemeralTokens) ephemeral: EphemeralTokens,
  ) {
    this.#tokens = tokens;
    this.#ephemeral = ephemeral;
  }

  authenticate({ bearer }: Credentials): Promise<AuthResult> | AuthResult | undefined {
    if (bearer === undefined) return undefined;
    const isOurs = isTokenLike(bearer);
    if (Buffer.byteLength(bearer) > MAX_SECRET_BYTES) return isOurs ? { refused: 'a malformed token' } : undefined;
    const problem = isOurs ? tokenProblem(bearer) : undefined;
    if (problem !== undefined) return { refused: problem };

    const digest = digestOf(bearer);
    if (bearer.startsWith(EPHEMERAL)) {
      const taken = this.#ephemeral.take(digest);
      return taken instanceof Promise ? taken.then((one) => this.#begin(one)) : this.#begin(taken);
    }
    return this.#check(digest) ?? (isOurs ? { refused: 'an unknown token' } : undefined);
  }

  /** The digest of the token that identified a caller, unless it was an ephemeral one. */
  digestOf(principal: Principal): string | undefined {
    return this.#digests.get(principal);
  }

  #begin(ephemeral: EphemeralToken | undefined): AuthResult {
    return ephemeral ? this.#renew(ephemeral) : { refused: 'an ephemeral token that is unknown, expired or used' };
  }

  /** Checks the token that an ephemeral one was issued for. */
  #renew(ephemeral: EphemeralToken): AuthResult {
    const result = this.#check(ephemeral.parent) ?? { refused: 'an ephemeral token of an unknown token' };
    if (!('principal' in result)) return result;
    return { principal: narrowed(result.principal, ephemeral), renew: () => this.#renew(ephemeral) };
  }

  #check(digest: string): AuthResult | undefined {
    const token = this.#tokens.find(digest);
    if (token === undefined || !digestsEqual(token.sha256, digest)) return undefined;
    if ('refused' in token.result) return token.result;
    if (token.expiresAt <= this.#tokens.now()) return { refused: `the token ${token.id} has expired`, expired: true };
    this.#tokens.recordUse(token);
    this.#digests.set(token.result.principal, digest);
    return token.result;
  }
}
