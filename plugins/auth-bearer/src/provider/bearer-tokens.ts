import { audit, type Lifecycle, type Logger, type PluginContext } from '@plugboard/kernel';
import type { Reconfiguration } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { BearerConfig } from '../config.js';
import { configuredToken, type KnownToken } from '../tokens/known-token.js';
import { IssuedTokens } from './issued-tokens.js';
import { LastUseRecorder } from './last-use-recorder.js';

/** The tokens of an entry, issued and configured, and the lifecycle of what watches them. */
export class BearerTokens implements Lifecycle {
  #configured: ReadonlyMap<string, KnownToken>;
  readonly #issued: IssuedTokens;
  readonly #lastUse: LastUseRecorder;
  readonly #log: Logger;

  constructor(
    @inject(CONTEXT) { config, log }: PluginContext<BearerConfig>,
    @inject(IssuedTokens) issued: IssuedTokens,
    @inject(LastUseRecorder) lastUse: LastUseRecorder,
  ) {
    this.#configured = configuredTokens(config);
    this.#issued = issued;
    this.#lastUse = lastUse;
    this.#log = log;
  }

  /** The time by which tokens expire, in milliseconds since the epoch. */
  now(): number {
    return this.#issued.now();
  }

  /** Issued tokens come first: a token that is also in the configuration can be revoked. */
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
    const projects = entries('projects');
    return () => {
      this.#configured = configured;
      this.#issued.setProjects(projects);
    };
  }

  async stop(): Promise<void> {
    await this.#issued.stop();
    await this.#lastUse.stop();
  }

  /** Records the use of an accepted token. */
  recordUse({ id, result }: KnownToken): void {
    if (!this.#lastUse.record(id) || !('principal' in result)) return;
    const { token, project } = result.principal;
    audit(this.#log, 'token_first_used', { token_id: id, token_name: token, project }, 'a token was used for the first time');
  }
}

/** By their digests. */
function configuredTokens({ tokens }: BearerConfig): ReadonlyMap<string, KnownToken> {
  return new Map(tokens.map(configuredToken).map((token) => [token.sha256, token]));
}
