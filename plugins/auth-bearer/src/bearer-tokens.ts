import { audit, type Clock, DEFAULT_PROJECT, type Lifecycle, type Logger } from '@plugboard/kernel';
import { BearerProvider, type TokenTable } from './bearer-provider.js';
import type { BearerConfig } from './config.js';
import { IssuedTokens } from './issued-tokens.js';
import { configuredToken, type KnownToken } from './known-token.js';
import { LastUse, usesFile } from './last-use.js';

/** The tokens of one entry, those of the configuration and the issued ones, and their life. */
export class BearerTokens implements TokenTable, Lifecycle {
  readonly provider: BearerProvider;
  readonly #configured: ReadonlyMap<string, KnownToken>;
  readonly #issued: IssuedTokens;
  readonly #lastUse: LastUse;
  readonly #log: Logger;

  constructor(options: {
    readonly config: BearerConfig;
    /** The tokens file, absolute. */
    readonly path: string;
    /** The keys under `projects`. */
    readonly projects: readonly string[];
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    const { config, path, projects, clock, log } = options;
    const configured = config.tokens.map(configuredToken);
    this.#configured = new Map(configured.map((token) => [token.sha256, token]));
    this.#issued = new IssuedTokens({ path, projects: new Set([DEFAULT_PROJECT, ...projects]), clock, log });
    this.#lastUse = new LastUse(usesFile(path), clock, log);
    this.#log = log;
    this.provider = new BearerProvider(this, clock, (token) => this.#noteUse(token));
  }

  /** An issued token that somebody has copied into the configuration stays revocable: the tokens file is asked first. */
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

  #noteUse({ id, answer }: KnownToken): void {
    if (!this.#lastUse.note(id) || !('principal' in answer)) return;
    const { token, project } = answer.principal;
    audit(this.#log, 'token_first_used', { token_id: id, token_name: token, project }, 'a token was used for the first time');
  }
}
