import { audit, type Clock, type Logger, type PluginContext } from '@plugboard/kernel';
import { DEFAULT_PROJECT, type Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { IssuedTokenStorage } from '../storage/issued-token-storage.js';
import type { TokenStorage } from '../storage/token-storage.js';
import { issuedToken, type KnownToken } from '../tokens/known-token.js';
import type { TokenRecord } from '../tokens/token-record.js';

/** Milliseconds between two checks. A revocation must take effect within 10 s. */
const INTERVAL = 2_000;

/**
 * The issued tokens, kept up to date with where they are stored, which the server only reads.
 *
 * 1. `start` reads them and fails if they cannot be used. A missing file means no tokens.
 * 2. Every two seconds the inode, size and times of the file, or the number of changes in the
 *    database, are checked, and the tokens are read again if they changed. SIGHUP reads at once.
 * 3. If they become unusable, the last good list stays in effect, revocations and expiries
 *    included, and one error is logged.
 * 4. Changes of tokens are written to the audit log.
 */
export class IssuedTokens {
  readonly #storages: Pick<IssuedTokenStorage, 'current' | 'unusedFile'>;
  #projects: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #log: Logger;
  #records: ReadonlyMap<string, TokenRecord> = new Map();
  #known: ReadonlyMap<string, KnownToken> = new Map();
  #signature = '';
  #isUnusable = false;
  #timer: Timer | undefined;
  /** The last check or read. They run one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    @inject(CONTEXT) { entries, clock, log }: Pick<PluginContext, 'entries' | 'clock' | 'log'>,
    @inject(IssuedTokenStorage) storages: Pick<IssuedTokenStorage, 'current' | 'unusedFile'>,
  ) {
    this.#storages = storages;
    this.#projects = knownProjects(entries('projects'));
    this.#clock = clock;
    this.#log = log;
  }

  get #storage(): TokenStorage {
    return this.#storages.current;
  }

  /** The time by which tokens expire, in milliseconds since the epoch. */
  now(): number {
    return this.#storage.now();
  }

  find(digest: string): KnownToken | undefined {
    return this.#known.get(digest);
  }

  /** @throws TokensUnusable */
  async start(): Promise<void> {
    this.#signature = await this.#storage.signature();
    this.#replace(await this.#storage.read());
    const file = await this.#storages.unusedFile();
    if (file !== undefined) {
      this.#log.warn(`issued tokens are in the database, and not in ${file}: write tokensFile to use the file, or remove it`);
    }
    const timer = this.#clock.after(INTERVAL, () => {
      void this.#serialize(() => this.#check()).finally(() => this.#timer?.refresh());
    });
    this.#timer = timer;
  }

  /** Changes the projects of the configuration. Tokens of other projects are refused. */
  setProjects(projects: readonly string[]): void {
    this.#projects = knownProjects(projects);
    this.#replace([...this.#records.values()]);
  }

  /** Reads the tokens again, or keeps the last good list. @throws TokensUnusable */
  reload(): Promise<void> {
    return this.#serialize(async () => {
      this.#signature = await this.#storage.signature();
      await this.#reread();
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#last;
  }

  /** Reads the tokens if they have changed. Never rejects: a problem is logged once. */
  async #check(): Promise<void> {
    const wasUnusable = this.#isUnusable;
    const before = this.#signature;
    try {
      this.#signature = ''; // unless it is known: then the next check reads
      this.#signature = await this.#storage.signature();
      if (this.#signature !== before) await this.#reread();
    } catch (error) {
      this.#isUnusable = true;
      if (wasUnusable) return;
      this.#log.error({ err: error }, `${this.#storage.name} cannot be used; the last good list stays in effect`);
    }
  }

  async #reread(): Promise<void> {
    try {
      const records = await this.#storage.read();
      const before = this.#records;
      this.#replace(records);
      this.#audit(before, records);
    } catch (error) {
      this.#isUnusable = true;
      throw error;
    }
    if (this.#isUnusable) this.#log.info(`${this.#storage.name} can be used again`);
    this.#isUnusable = false;
  }

  #replace(records: readonly TokenRecord[]): void {
    this.#records = new Map(records.map((record) => [record.id, record]));
    this.#known = new Map(records.map((record) => [record.sha256, issuedToken(record, this.#projects)]));
  }

  #audit(before: ReadonlyMap<string, TokenRecord>, now: readonly TokenRecord[]): void {
    for (const record of now) {
      const { id, replaces, createdBy, revokedAt, revokedBy } = record;
      const known = before.get(id);
      if (known === undefined && replaces !== undefined) {
        audit(this.#log, 'token_rotated', { ...auditFields(record), replaces, by: createdBy }, 'a token was rotated');
      } else if (known === undefined) {
        audit(this.#log, 'token_created', { ...auditFields(record), by: createdBy }, 'a token was created');
      }
      if (revokedAt !== undefined && known?.revokedAt === undefined) {
        audit(this.#log, 'token_revoked', { ...auditFields(record), by: revokedBy }, 'a token was revoked');
      }
    }
    for (const record of before.values()) {
      if (this.#records.has(record.id) || record.revokedAt !== undefined) continue;
      audit(this.#log, 'token_revoked', auditFields(record), `a token was removed from ${this.#storage.name}`);
    }
  }

  #serialize<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

/** @param projects the keys under `projects`. */
function knownProjects(projects: readonly string[]): ReadonlySet<string> {
  return new Set([DEFAULT_PROJECT, ...projects]);
}

function auditFields({ id, name, project, scopes }: TokenRecord) {
  return { token_id: id, token_name: name, project, scopes };
}
