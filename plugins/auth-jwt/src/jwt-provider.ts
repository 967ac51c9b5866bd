import {
  type AuthProvider,
  type AuthResult,
  type Clock,
  ConfigFault,
  type Credentials,
  type Lifecycle,
  parseDuration,
} from '@plugboard/kernel';
import type { JWTPayload } from 'jose';
import type { JwtConfig } from './config.js';
import { hasExpired, KeysUnavailable, refusalOf } from './errors.js';
import type { KeyCache } from './key-cache.js';
import { principalOf } from './principal.js';
import { checkedClaims, type Expected, isToken, namedIssuer } from './token.js';

/**
 * Identifies callers by the tokens of an OpenID Connect issuer.
 *
 * Returns undefined for a credential that is not a JWT, or a token of another issuer, which may
 * belong to another provider. Any other decision is final.
 */
export class JwtProvider implements AuthProvider, Lifecycle {
  readonly #config: JwtConfig;
  readonly #projects: readonly string[];
  readonly #keys: KeyCache;
  readonly #clock: Clock;
  readonly #expected: Omit<Expected, 'now'>;

  constructor(config: JwtConfig, projects: readonly string[], keys: KeyCache, clock: Clock) {
    this.#config = config;
    this.#projects = projects;
    this.#keys = keys;
    this.#clock = clock;
    this.#expected = { ...config, maxTokenAge: config.maxTokenAge === undefined ? undefined : parseDuration(config.maxTokenAge) };
  }

  /**
   * @throws ConfigFault if the issuer has another name. If it does not answer, the server starts,
   * and the keys are fetched later.
   */
  async start(signal: AbortSignal): Promise<void> {
    const other = await this.#keys.start(signal);
    if (other) throw new ConfigFault([{ path: ['issuer'], message: other.message }]);
  }

  stop(): void {
    this.#keys.stop();
  }

  /** @throws KeysUnavailable */
  async authenticate({ bearer }: Credentials): Promise<AuthResult | undefined> {
    if (bearer === undefined) return undefined;
    if (!isToken(bearer)) return undefined;
    const issuer = namedIssuer(bearer);
    if (issuer !== undefined && issuer !== this.#config.issuer) return undefined;
    let claims: JWTPayload;
    try {
      claims = await checkedClaims(bearer, this.#keys, { ...this.#expected, now: this.#clock.now() });
    } catch (error) {
      if (error instanceof KeysUnavailable) throw error;
      return { refused: refusalOf(error), ...(hasExpired(error) && { expired: true }) };
    }
    return principalOf(claims, this.#config, this.#projects);
  }
}
