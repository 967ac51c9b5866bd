import { audit, type Clock, type IdSource, type Lifecycle, type Logger } from '@plugboard/kernel';
import { DEFAULT_PROJECT, type Reconfiguration } from '@plugboard/kernel/contracts';
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
  #configured: ReadonlyMap<string, KnownToken>;
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
    this.#configured = configuredTokens(config);
    this.#issued = new IssuedTokens({ path, projects: knownProjects(projects), clock, log });
    this.#lastUse = new LastUseRecorder(lastUseFile(path), clock, log);
    this.#log = log;
    this.ephemeral = new EphemeralTokens(clock, ids);
    this.provider = new BearerProvider(this, this.ephemeral, clock, (token) => this.#recordUse(token));
  }

  /**
   * The tokens file comes first, so that an issued token that was copied into the configuration can
   * still be revoked.
   */
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

  /** Tokens that were removed are refused from now on; ephemeral tokens stay. */
  reconfigure({ config, entries }: Reconfiguration<BearerConfig>): () => void {
    const configured = configuredTokens(config);
    const projects = knownProjects(entries('projects'));
    return () => {
      this.#configured = configured;
      this.#issued.setProjects(projects);
    };
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

/** By their digests. */
function configuredTokens({ tokens }: BearerConfig): ReadonlyMap<string, KnownToken> {
  return new Map(tokens.map(configuredToken).map((token) => [token.sha256, token]));
}

/** @param projects the keys under `projects`. */
function knownProjects(projects: readonly string[]): ReadonlySet<string> {
  return new Set([DEFAULT_PROJECT, ...projects]);
}
