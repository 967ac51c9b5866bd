import type { Clock, IdSource, PluginContext, Principal } from '@plugboard/kernel';
import type { Scope } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { digestOf } from '../tokens/digest.js';
import { newToken } from '../tokens/token-format.js';

/** How long an ephemeral token can be used after it was issued (ms). */
const LIFETIME = 60_000;
/** Tokens that wait to be used. */
const MAX_OUTSTANDING = 10_000;
const MAX_OUTSTANDING_PER_TOKEN = 100;

/** What an ephemeral token may do: no more than the token that it was issued for. */
export interface EphemeralRights {
  readonly scopes: readonly Scope[];
  readonly agents: readonly string[] | undefined;
}

/** A stored ephemeral token. */
export interface EphemeralToken extends EphemeralRights {
  /** The digest of the token that it was issued for. */
  readonly parent: string;
  /** On the clock's monotonic scale. */
  readonly until: number;
}

/**
 * Tokens for one use within a minute, for clients that must not hold a real one. They are in
 * memory, so only the process that issued one accepts it.
 */
export class EphemeralTokens {
  readonly #clock: Clock;
  readonly #ids: IdSource;
  /** By digest, in the order in which they expire. */
  readonly #tokens = new Map<string, EphemeralToken>();

  constructor(@inject(CONTEXT) { clock, ids }: Pick<PluginContext, 'clock' | 'ids'>) {
    this.#clock = clock;
    this.#ids = ids;
  }

  /** @returns undefined if too many tokens wait to be used. */
  issue(parent: string, rights: EphemeralRights): { readonly value: string; readonly expiresAt: number } | undefined {
    this.#forgetExpired();
    const siblings = [...this.#tokens.values()].filter((token) => token.parent === parent).length;
    if (this.#tokens.size >= MAX_OUTSTANDING || siblings >= MAX_OUTSTANDING_PER_TOKEN) return undefined;
    const value = newToken('e', this.#ids);
    this.#tokens.set(digestOf(value), { parent, until: this.#clock.monotonic() + LIFETIME, ...rights });
    return { value, expiresAt: this.#clock.now() + LIFETIME };
  }

  /** The token of a digest, which is used up by that. */
  take(digest: string): EphemeralToken | undefined {
    this.#forgetExpired();
    const token = this.#tokens.get(digest);
    this.#tokens.delete(digest);
    return token;
  }

  #forgetExpired(): void {
    const now = this.#clock.monotonic();
    for (const [digest, { until }] of this.#tokens) {
      if (until > now) return;
      this.#tokens.delete(digest);
    }
  }
}

/** The rights of a token, narrowed to an ephemeral one's. Rights that it lost are lost here. */
export function narrowed(principal: Principal, { scopes, agents }: EphemeralRights): Principal {
  const allowed = agents === undefined ? principal.agents : agents.filter((name) => principal.agents?.includes(name) ?? true);
  return Object.freeze({
    ...principal,
    scopes: Object.freeze(scopes.filter((scope) => principal.scopes.includes(scope))),
    ...(allowed && { agents: Object.freeze(allowed) }),
  });
}
