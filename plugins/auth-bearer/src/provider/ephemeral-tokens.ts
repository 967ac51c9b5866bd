import type { Clock, IdSource, PluginContext, PluginState, Principal } from '@plugboard/kernel';
import type { Scope } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { IssuedTokenStorage } from '../storage/issued-token-storage.js';
import { digestOf } from '../tokens/digest.js';
import { newToken } from '../tokens/token-format.js';

/** How long an ephemeral token can be used after it was issued (ms). */
const LIFETIME = 60_000;
/** Tokens that wait to be used. */
const MAX_OUTSTANDING = 10_000;
const MAX_OUTSTANDING_PER_TOKEN = 100;
/** Ephemeral tokens in the database, by digest. */
const SHARED = 'ephemeral/';

/** Those of one token, to count them. */
function siblingsOf(parent: string): string {
  return `ephemeral-of/${parent}/`;
}

/** What an ephemeral token may do: no more than the token that it was issued for. */
export interface EphemeralRights {
  readonly scopes: readonly Scope[];
  readonly agents: readonly string[] | undefined;
}

/** A stored ephemeral token. */
export interface EphemeralToken extends EphemeralRights {
  /** The digest of the token that it was issued for. */
  readonly parent: string;
}

interface Outstanding extends EphemeralToken {
  /** On the clock's monotonic scale. */
  readonly until: number;
}

/** The value of a new ephemeral token. */
export interface IssuedEphemeral {
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
}

/**
 * Tokens for one use within a minute, for clients that must not hold a real one. They are in the
 * database, where issued tokens are there: then any server accepts one. Else they are in memory,
 * and only the process that issued one accepts it.
 */
export class EphemeralTokens {
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #storage: Pick<IssuedTokenStorage, 'sharedState'>;
  /** By digest, in the order in which they expire. */
  readonly #tokens = new Map<string, Outstanding>();

  constructor(
    @inject(CONTEXT) { clock, ids }: Pick<PluginContext, 'clock' | 'ids'>,
    @inject(IssuedTokenStorage) storage: Pick<IssuedTokenStorage, 'sharedState'>,
  ) {
    this.#storage = storage;
    this.#clock = clock;
    this.#ids = ids;
  }

  /** @returns undefined if too many tokens wait to be used. */
  issue(parent: string, rights: EphemeralRights): Promise<IssuedEphemeral | undefined> | IssuedEphemeral | undefined {
    const issued = { value: newToken('e', this.#ids), expiresAt: this.#clock.now() + LIFETIME };
    const { sharedState } = this.#storage;
    if (sharedState) return this.#share(sharedState, issued, { parent, ...rights });
    this.#forgetExpired();
    const siblings = [...this.#tokens.values()].filter((token) => token.parent === parent).length;
    if (this.#tokens.size >= MAX_OUTSTANDING || siblings >= MAX_OUTSTANDING_PER_TOKEN) return undefined;
    this.#tokens.set(digestOf(issued.value), { parent, until: this.#clock.monotonic() + LIFETIME, ...rights });
    return issued;
  }

  /** The token of a digest, which is used up by that. */
  take(digest: string): Promise<EphemeralToken | undefined> | EphemeralToken | undefined {
    const { sharedState } = this.#storage;
    if (sharedState) return this.#takeShared(sharedState, digest);
    this.#forgetExpired();
    const token = this.#tokens.get(digest);
    this.#tokens.delete(digest);
    return token;
  }

  async #share(state: PluginState, issued: IssuedEphemeral, token: EphemeralToken): Promise<IssuedEphemeral | undefined> {
    const siblings = await state.list(siblingsOf(token.parent), { limit: MAX_OUTSTANDING_PER_TOKEN });
    if (siblings.length >= MAX_OUTSTANDING_PER_TOKEN) return undefined;
    const digest = digestOf(issued.value);
    const values = { [SHARED + digest]: token, [siblingsOf(token.parent) + digest]: true };
    await state.apply(state.changes(values, { expiresIn: LIFETIME }));
    return issued;
  }

  /** Of several servers that take a token at once, one gets it. */
  async #takeShared(state: PluginState, digest: string): Promise<EphemeralToken | undefined> {
    const key = SHARED + digest;
    const token = (await state.get(key)) as EphemeralToken | undefined; // only this class writes it
    if (!token) return undefined;
    const removal = { [key]: undefined, [siblingsOf(token.parent) + digest]: undefined };
    return (await state.apply(state.changes(removal, { expected: { [key]: token } }))) ? token : undefined;
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
