import type { CheckContext, Clock, IdSource, PluginContext } from '@plugboard/kernel';
import { CommandError, DEFAULT_PROJECT, type Scope, suggestion } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { BearerConfig } from '../config.js';
import { IssuedTokenStorage } from '../storage/issued-token-storage.js';
import { agentProblem } from '../tokens/agent-problem.js';
import { digestOf } from '../tokens/digest.js';
import { hintOf, newToken } from '../tokens/token-format.js';
import { statusOf, type TokenRecord, TokensUnusable } from '../tokens/token-record.js';
import { type ListedToken, listTokens } from './list-tokens.js';
import { activeTokens, describeToken, selectToken } from './select-token.js';

/** A token to create. */
interface TokenRequest {
  readonly project: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly agents?: readonly string[] | undefined;
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number | undefined;
  readonly requestsPerMinute?: number | undefined;
  readonly runningTurns?: number | undefined;
  /** The user that runs the command. */
  readonly by: string;
}

interface Rotation {
  /** Milliseconds for which the old token stays valid. */
  readonly grace: number;
  /** When the new token expires. Absent: it gets the lifetime of the old one. */
  readonly expiresAt?: number | undefined;
  readonly project?: string | undefined;
  readonly by: string;
}

/** A new token. `token` is its only copy. */
export interface IssuedToken {
  readonly token: string;
  readonly record: TokenRecord;
}

/**
 * Creates, rotates, revokes and lists issued tokens. Concurrent commands lose nothing
 * (`TokenStorage.change`). A change that is not possible throws a CommandError and has no effect.
 */
export class TokenRegistry {
  readonly clock: Clock;
  readonly #config: BearerConfig;
  readonly #storage: IssuedTokenStorage;
  readonly #entries: CheckContext['entries'];
  readonly #ids: IdSource;

  constructor(
    @inject(CONTEXT) { config, entries, clock, ids }: PluginContext<BearerConfig>,
    @inject(IssuedTokenStorage) storage: IssuedTokenStorage,
  ) {
    this.clock = clock;
    this.#config = config;
    this.#storage = storage;
    this.#entries = entries;
    this.#ids = ids;
  }

  /** Whether the tokens are in `ctx.state`. */
  get usesState(): boolean {
    return this.#storage.sharedState !== undefined;
  }

  create(request: TokenRequest): Promise<IssuedToken> {
    const { project, name, agents = [] } = request;
    assertKnown(project, [DEFAULT_PROJECT, ...this.#entries('projects')]);
    for (const agent of agents) {
      const problem = agentProblem(agent, project, this.#entries);
      if (problem !== undefined) throw new CommandError(`the configuration has ${problem}`);
    }
    return this.#change((records, now) => {
      const existing = activeTokens(records, name, now).find((record) => record.project === project);
      const configured = this.#config.tokens.some((token) => token.name === name && token.project === project);
      if (existing !== undefined)
        throw new CommandError(`${describeToken(existing)} already exists; revoke or rotate it, or choose another name`);
      if (configured) {
        throw new CommandError(`the configuration already has a token "${name}" of project ${project}; choose another name`);
      }
      const issued = this.#issue(request, now);
      return { records: [...records, issued.record], result: issued };
    });
  }

  /** Creates a token with the same name and rights. The old one expires after the grace period. */
  rotate(idOrName: string, { grace, expiresAt, project, by }: Rotation): Promise<IssuedToken> {
    return this.#change((records, now) => {
      const old = selectToken(records, idOrName, project, now);
      const status = statusOf(old, now);
      if (status !== 'active') throw new CommandError(`${describeToken(old)} is ${status}; create a new one`);
      const successor = records.find(({ replaces }) => replaces === old.id);
      if (successor !== undefined)
        throw new CommandError(`${describeToken(old)} was already rotated; rotate its successor ${successor.id}`);
      const end = old.expiresAt === undefined ? undefined : Date.parse(old.expiresAt);
      const renewed = end === undefined ? undefined : now + end - Date.parse(old.createdAt);
      const issued = this.#issue({ ...old, expiresAt: expiresAt ?? renewed, by, replaces: old.id }, now);
      const ending = { ...old, expiresAt: iso(Math.min(now + grace, end ?? Number.POSITIVE_INFINITY)) };
      return { records: [...records.map((record) => (record === old ? ending : record)), issued.record], result: issued };
    });
  }

  /** @returns the revoked token. Does nothing if it was revoked before. */
  revoke(
    idOrName: string,
    { project, by }: { readonly project?: string | undefined; readonly by: string },
  ): Promise<TokenRecord> {
    return this.#change((records, now) => {
      const found = selectToken(records, idOrName, project, now);
      if (found.revokedAt !== undefined) return { records, result: found };
      const revoked = { ...found, revokedAt: iso(now), revokedBy: by };
      return { records: records.map((record) => (record === found ? revoked : record)), result: revoked };
    });
  }

  /** Lists the tokens of one project, or all. */
  async list(project?: string): Promise<readonly ListedToken[]> {
    const storage = this.#storage.current;
    const records = await storage.read().catch((error) => {
      throw error instanceof TokensUnusable ? new CommandError(error.message) : error;
    });
    const source = storage.isShared ? 'database' : 'file';
    const tokens = listTokens(this.#config, { records, source }, await storage.lastUses(), storage.now());
    return tokens.filter((token) => project === undefined || token.project === project);
  }

  #issue({ by, expiresAt, ...request }: TokenRequest & { readonly replaces?: string }, now: number): IssuedToken {
    const { project, name, scopes, agents, requestsPerMinute, runningTurns, replaces } = request;
    const token = newToken(scopes.includes('admin') ? 'a' : 'p', this.#ids);
    const record: TokenRecord = {
      id: `tok_${this.#ids.base62(16)}`,
      project,
      name,
      sha256: digestOf(token),
      hint: hintOf(token),
      scopes,
      ...(agents && { agents }),
      ...(requestsPerMinute !== undefined && { requestsPerMinute }),
      ...(runningTurns !== undefined && { runningTurns }),
      createdAt: iso(now),
      createdBy: by,
      ...(expiresAt !== undefined && { expiresAt: iso(expiresAt) }),
      ...(replaces !== undefined && { replaces }),
    };
    return { token, record };
  }

  #change<T>(work: (records: readonly TokenRecord[], now: number) => { records: readonly TokenRecord[]; result: T }): Promise<T> {
    const storage = this.#storage.current;
    return storage.change((records) => work(records, storage.now()));
  }
}

function assertKnown(project: string, known: readonly string[]): void {
  if (!known.includes(project))
    throw new CommandError(`the configuration has no project "${project}"${suggestion(project, known)}`);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
