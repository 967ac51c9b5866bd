import { audit, type Clock, type IdSource, type Lifecycle, type Logger } from '@plugboard/kernel';
import { DEFAULT_PROJECT } from '@plugboard/kernel/contracts';
import type { BearerConfig } from './config.js';
import { LastUseRecorder, lastUseFile } from './files/last-use.js';
import { BearerProvider, type TokenLookup } from './provider/bearer-provider.js';
import { EphemeralTokens } from './provider/ephemeral-tokens.js';
import { IssuedTokens } from './provider/issued-tokens.js';
import { configuredToken, type KnownToken } from './tokens/known-token.js';

/** The tokens of an entry, issued and configured, and the lifecycle of what watches them. */
export class BearerTokens implements TokenLookup, Lifecycle {
  readonly provider: BearerProvider;
  readonly ephemeral: EphemeralTokens;
  readonly #configured: ReadonlyMap<string, KnownToken>;
  readonly #issued: IssuedTokens;
  readonly #lastUse: LastUseRecorder;
  readonly #log: Logger;

  constructor(options: {
    readonly config: BearerConfig;
    /** The tokens file, absolute. */
    readonly path: string;
    /** The keys under `projects`. */
    readonly projects: readonly string[];
    readonly clock: Clock;
    readonly ids: IdSource;
    readonly log: Logger;
  }) {
    const { config, path, projects, clock, ids, log } = options;
    const configured = config.tokens.map(configuredToken);
    this.#configured = new Map(configured.map((token) => [token.sha256, token]));
    this.#issued = new IssuedTokens({ path, projects: new Set([DEFAULT_PROJECT, ...projects]), clock, log });
    this.#lastUse = new LastUseRecorder(lastUseFile(path), clock, log);
    this.#log = log;
    this.ephemeral = new EphemeralTokens(clock, ids);
    this.provider = new BearerProvider(this, this.ephemeral, clock, (token) => this.#recordUse(token));
  }

  /** The tokens file comes first, so that an issued token that was copied into the configuration can still be revoked. */
  find(digest: string): KnownToken | undefined {
    return this.#issued.find(digest) ?? this.#configured.get(digest);
  }

  async start(): Promise<void> {
    await this.#issued.start();
    await this.#lastUse.start();
  }

  reload(): Promise<void> {
    return this.#issued.reload();
  }

  async stop(): Promise<void> {
    await this.#issued.stop();
    await this.#lastUse.stop();
  }

  #recordUse({ id, result }: KnownToken): void {
    if (!this.#lastUse.record(id) || !('principal' in result)) return;
    const { token, project } = result.principal;
    audit(this.#log, 'token_first_used', { token_id: id, token_name: token, project }, 'a token was used for the first time');
  }
}
