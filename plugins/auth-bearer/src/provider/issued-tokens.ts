import { audit, type Clock, type Logger, type PluginContext } from '@plugboard/kernel';
import { DEFAULT_PROJECT, type Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { BearerConfig } from '../config.js';
import { fileSignature, readTokens } from '../files/token-file.js';
import { issuedToken, type KnownToken } from '../tokens/known-token.js';
import type { TokenRecord } from '../tokens/token-record.js';

/** Milliseconds between checks of the file. A revocation must take effect within 10 s. */
const INTERVAL = 2_000;

/**
 * The issued tokens, kept up to date with their file, which the server only reads.
 *
 * 1. `start` reads the file and fails if it cannot be used. A missing file means no tokens.
 * 2. Every two seconds the inode, size and times of the file are checked, and it is read again if
 *    they changed. SIGHUP reads it at once.
 * 3. If the file becomes unusable, the last good list stays in effect, revocations and expiries
 *    included, and one error is logged.
 * 4. Changes of tokens are written to the audit log.
 */
export class IssuedTokens {
  readonly #path: string;
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
    @inject(CONTEXT)
    ctx: Pick<PluginContext<BearerConfig>, 'config' | 'resolvePath' | 'entries' | 'clock' | 'log'>,
  ) {
    this.#path = ctx.resolvePath(ctx.config.tokensFile);
    this.#projects = knownProjects(ctx.entries('projects'));
    this.#clock = ctx.clock;
    this.#log = ctx.log;
  }

  find(digest: string): KnownToken | undefined {
    return this.#known.get(digest);
  }

  /** @throws TokenFileError */
  async start(): Promise<void> {
    this.#signature = await fileSignature(this.#path);
    this.#replace(await readTokens(this.#path));
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

  /** Reads the file again, or keeps the last good list. @throws TokenFileError */
  reload(): Promise<void> {
    return this.#serialize(async () => {
      this.#signature = await fileSignature(this.#path);
      await this.#reread();
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#last;
  }

  /** Reads the file if it has changed. Never rejects: a problem is logged once. */
  async #check(): Promise<void> {
    const signature = await fileSignature(this.#path);
    if (signature === this.#signature) return;
    this.#signature = signature;
    const wasUnusable = this.#isUnusable;
    try {
      await this.#reread();
    } catch (error) {
      if (!wasUnusable) this.#log.error({ err: error }, 'the tokens file cannot be used; the last good list stays in effect');
    }
  }

  async #reread(): Promise<void> {
    try {
      const records = await readTokens(this.#path);
      const before = this.#records;
      this.#replace(records);
      this.#audit(before, records);
    } catch (error) {
      this.#isUnusable = true;
      throw error;
    }
    if (this.#isUnusable) this.#log.info('the tokens file can be used again');
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
      audit(this.#log, 'token_revoked', auditFields(record), 'a token was removed from the tokens file');
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
