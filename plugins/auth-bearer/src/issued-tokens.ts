import { audit, type Clock, type Logger, type Timer } from '@plugboard/kernel';
import type { TokenTable } from './bearer-provider.js';
import { type KnownToken, knownToken } from './known-token.js';
import { readTokens, signatureOf } from './token-file.js';
import type { TokenRecord } from './token-record.js';

/** Milliseconds between two looks at the file: far less than the ten seconds within which a revocation must be known. */
const INTERVAL = 2_000;

/**
 * The issued tokens, as their file has them now. The server only reads it.
 *
 * 1. It is read at the start, which fails where it cannot be used. Where there is none, there are no tokens yet.
 * 2. Every two seconds its inode, size and times are looked at, and it is read again where they have changed; on SIGHUP, in any case.
 * 3. Where it cannot be used any more, the last good list stays, and one error is logged until it is right again. Nobody is let in by that whom the file has ever been
 *    seen to refuse: the list that stays is the one with the last revocation in it, and what expires meanwhile expires.
 * 4. What has become of tokens since the last look is written to the audit log.
 */
export class IssuedTokens implements TokenTable {
  readonly #path: string;
  readonly #projects: ReadonlySet<string>;
  readonly #clock: Clock;
  readonly #log: Logger;
  #records: ReadonlyMap<string, TokenRecord> = new Map();
  #known: ReadonlyMap<string, KnownToken> = new Map();
  #signature = '';
  #faulty = false;
  #timer: Timer | undefined;
  /** The last look or reading that was asked for: they come one after the other. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: {
    /** Absolute. */
    readonly path: string;
    /** Those of the configuration. */
    readonly projects: ReadonlySet<string>;
    readonly clock: Clock;
    readonly log: Logger;
  }) {
    this.#path = options.path;
    this.#projects = options.projects;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  find(digest: string): KnownToken | undefined {
    return this.#known.get(digest);
  }

  /** @throws TokenFileError */
  async start(): Promise<void> {
    this.#signature = await signatureOf(this.#path);
    this.#take(await readTokens(this.#path));
    const timer = this.#clock.after(INTERVAL, () => {
      void this.#inTurn(() => this.#look()).finally(() => this.#timer?.refresh());
    });
    this.#timer = timer;
  }

  /** Reads the file again, whether or not it seems to have changed. @throws TokenFileError: the last good list stays. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      this.#signature = await signatureOf(this.#path);
      await this.#read();
    });
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#turn;
  }

  /** A look at the file. Never rejects: what is wrong with it is logged, once. */
  async #look(): Promise<void> {
    const signature = await signatureOf(this.#path);
    if (signature === this.#signature) return;
    this.#signature = signature;
    const wasFaulty = this.#faulty;
    try {
      await this.#read();
    } catch (error) {
      if (!wasFaulty) this.#log.error({ err: error }, 'the tokens file cannot be used: the tokens stay as they were last read');
    }
  }

  async #read(): Promise<void> {
    try {
      const records = await readTokens(this.#path);
      const before = this.#records;
      this.#take(records);
      this.#audit(before, records);
    } catch (error) {
      this.#faulty = true;
      throw error;
    }
    if (this.#faulty) this.#log.info('the tokens file can be used again');
    this.#faulty = false;
  }

  #take(records: readonly TokenRecord[]): void {
    this.#records = new Map(records.map((record) => [record.id, record]));
    this.#known = new Map(records.map((record) => [record.sha256, knownToken(record, this.#projects)]));
  }

  #audit(before: ReadonlyMap<string, TokenRecord>, now: readonly TokenRecord[]): void {
    for (const record of now) {
      const { id, replaces, createdBy, revokedAt, revokedBy } = record;
      const known = before.get(id);
      if (known === undefined && replaces !== undefined) {
        audit(this.#log, 'token_rotated', { ...factsOf(record), replaces, by: createdBy }, 'a token was rotated');
      } else if (known === undefined) {
        audit(this.#log, 'token_created', { ...factsOf(record), by: createdBy }, 'a token was created');
      }
      if (revokedAt !== undefined && known?.revokedAt === undefined) {
        audit(this.#log, 'token_revoked', { ...factsOf(record), by: revokedBy }, 'a token was revoked');
      }
    }
    for (const record of before.values()) {
      if (this.#records.has(record.id) || record.revokedAt !== undefined) continue;
      audit(this.#log, 'token_revoked', factsOf(record), 'a token was taken out of the tokens file');
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work);
    this.#turn = done.catch(() => undefined);
    return done;
  }
}

function factsOf({ id, name, project, scopes }: TokenRecord) {
  return { token_id: id, token_name: name, project, scopes };
}
