import {
  type AuthProvider,
  type AuthResult,
  type Clock,
  ConfigFault,
  type Credentials,
  type Lifecycle,
  parseDuration,
} from '@plugboard/kernel';
import { CLOCK, CONFIG, inject, injectable } from '@plugboard/kernel/injection';
import type { JWTPayload } from 'jose';
import type { JwtConfig } from './config.js';
import { KeysUnavailable, refusalOf } from './errors.js';
import { KeyCache } from './key-cache.js';
import { principalOf } from './principal.js';
import { PROJECTS } from './project.js';
import { checkedClaims, type Expected, isToken, namedIssuer } from './token.js';

/**
 * Tells callers by the tokens of an OpenID Connect issuer.
 *
 * A credential that has not the form of a JWT is not ours, and neither is a token that names another issuer: that may be the next provider's.
 * Everything else is decided here.
 */
@injectable()
export class JwtProvider implements AuthProvider, Lifecycle {
  readonly #config: JwtConfig;
  readonly #projects: readonly string[];
  readonly #keys: KeyCache;
  readonly #clock: Clock;
  readonly #expected: Omit<Expected, 'now'>;

  constructor(
    @inject(CONFIG) config: JwtConfig,
    @inject(PROJECTS) projects: readonly string[],
    @inject(KeyCache) keys: KeyCache,
    @inject(CLOCK) clock: Clock,
  ) {
    this.#config = config;
    this.#projects = projects;
    this.#keys = keys;
    this.#clock = clock;
    this.#expected = { ...config, maxTokenAge: config.maxTokenAge === undefined ? undefined : parseDuration(config.maxTokenAge) };
  }

  /** @throws ConfigFault where the issuer is another one. An issuer that does not answer is waited for while the server runs. */
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
      return { refused: refusalOf(error) };
    }
    return principalOf(claims, this.#config, this.#projects);
  }
}
