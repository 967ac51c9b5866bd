import { type Clock, CommandError, DEFAULT_PROJECT, type IdSource, type Scope, suggestion } from '@plugboard/kernel';
import { writeAtomically } from './atomic-write.js';
import type { BearerConfig } from './config.js';
import { digestOf } from './digest.js';
import { readUses, usesFile } from './last-use.js';
import { type ListedToken, listTokens } from './list-tokens.js';
import { withLock } from './lock.js';
import { activeNamed, pickToken, titleOf } from './pick-token.js';
import { formatTokens, readTokens, TokenFileError } from './token-file.js';
import { hintOf, newToken } from './token-format.js';
import { statusOf, type TokenRecord } from './token-record.js';

/** What a new token is to be. */
export interface NewToken {
  readonly project: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly agents?: readonly string[] | undefined;
  /** Milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
  readonly requestsPerMinute?: number | undefined;
  readonly runningTurns?: number | undefined;
  /** Who asks for it. */
  readonly by: string;
}

export interface Rotation {
  /** Milliseconds for which the old token is taken beside the new one. */
  readonly grace: number;
  /** When the new one expires; after as long a life as the old one was to have where it is absent. */
  readonly expiresAt?: number | undefined;
  readonly project?: string | undefined;
  readonly by: string;
}

/** A token that was just made. `token` is the only place where it ever stands. */
export interface IssuedToken {
  readonly token: string;
  readonly record: TokenRecord;
}

interface Options {
  /** The tokens file, absolute. */
  readonly path: string;
  readonly config: BearerConfig;
  /** The keys under `projects`. */
  readonly projects: readonly string[];
  /** The keys under `agents`. */
  readonly agents: readonly string[];
  readonly clock: Clock;
  readonly ids: IdSource;
}

/**
 * The tokens file as the commands see it. Every change is one reading and one writing of the whole file, under a lock, so that two commands at once lose
 * nothing. What cannot be done is a CommandError, and changes nothing.
 */
export class TokenBook {
  readonly clock: Clock;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.clock = options.clock;
  }

  create(wanted: NewToken): Promise<IssuedToken> {
    const { project, name, agents = [] } = wanted;
    const { config, projects } = this.#options;
    mustKnow('project', [project], [DEFAULT_PROJECT, ...projects]);
    mustKnow('agent', agents, this.#options.agents);
    return this.#change((records, now) => {
      const rival = activeNamed(records, name, now).find((record) => record.project === project);
      const configured = config.tokens.some((token) => token.name === name && token.project === project);
      if (rival !== undefined)
        throw new CommandError(`there is a ${titleOf(rival)} already; revoke or rotate it, or choose another name`);
      if (configured) {
        throw new CommandError(
          `there is a token "${name}" of project ${project} in the configuration already; choose another name`,
        );
      }
      const issued = this.#issue(wanted, now);
      return { records: [...records, issued.record], result: issued };
    });
  }

  /** Makes a token of the same name and rights, and lets the old one expire when its time of grace is over. */
  rotate(which: string, { grace, expiresAt, project, by }: Rotation): Promise<IssuedToken> {
    return this.#change((records, now) => {
      const old = pickToken(records, which, project, now);
      const status = statusOf(old, now);
      if (status !== 'active') throw new CommandError(`${titleOf(old)} is ${status}; create a new one`);
      const heir = records.find(({ replaces }) => replaces === old.id);
      if (heir !== undefined) throw new CommandError(`${titleOf(old)} was rotated already; rotate its successor, ${heir.id}`);
      const end = old.expiresAt === undefined ? undefined : Date.parse(old.expiresAt);
      const renewed = end === undefined ? undefined : now + end - Date.parse(old.createdAt);
      const issued = this.#issue({ ...old, expiresAt: expiresAt ?? renewed, by, replaces: old.id }, now);
      const ending = { ...old, expiresAt: iso(Math.min(now + grace, end ?? Number.POSITIVE_INFINITY)) };
      return { records: [...records.map((record) => (record === old ? ending : record)), issued.record], result: issued };
    });
  }

  /** @returns the token as it is now. One that was revoked before stays as it was. */
  revoke(which: string, { project, by }: { readonly project?: string | undefined; readonly by: string }): Promise<TokenRecord> {
    return this.#change((records, now) => {
      const found = pickToken(records, which, project, now);
      if (found.revokedAt !== undefined) return { records, result: found };
      const revoked = { ...found, revokedAt: iso(now), revokedBy: by };
      return { records: records.map((record) => (record === found ? revoked : record)), result: revoked };
    });
  }

  /** The tokens of one project, or of all. */
  async list(project?: string): Promise<readonly ListedToken[]> {
    const { config, path } = this.#options;
    const tokens = listTokens(config, await this.#read(), await readUses(usesFile(path)), this.clock.now());
    return tokens.filter((token) => project === undefined || token.project === project);
  }

  #issue({ by, expiresAt, ...wanted }: NewToken & { readonly replaces?: string }, now: number): IssuedToken {
    const { project, name, scopes, agents, requestsPerMinute, runningTurns, replaces } = wanted;
    const { ids } = this.#options;
    const token = newToken(scopes.includes('admin') ? 'a' : 'p', ids);
    const record: TokenRecord = {
      id: `tok_${ids.base62(16)}`,
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
    const { path } = this.#options;
    return withLock(path, async () => {
      const before = await this.#read();
      const { records, result } = work(before, this.clock.now());
      if (records === before) return result;
      try {
        await writeAtomically(path, formatTokens(records));
      } catch (error) {
        throw new CommandError(`the tokens file ${path} cannot be written: ${(error as Error).message}; nothing was changed`);
      }
      return result;
    });
  }

  async #read(): Promise<readonly TokenRecord[]> {
    try {
      return await readTokens(this.#options.path);
    } catch (error) {
      throw error instanceof TokenFileError ? new CommandError(error.message) : error;
    }
  }
}

function mustKnow(noun: 'project' | 'agent', names: readonly string[], known: readonly string[]): void {
  const stranger = names.find((name) => !known.includes(name));
  if (stranger === undefined) return;
  throw new CommandError(`there is no ${noun} "${stranger}" in the configuration${suggestion(stranger, known)}`);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
