import type { Clock, Lifecycle, Logger, SessionStore } from '@plugboard/kernel';
import type {
  DocumentStore,
  IdempotencyStore,
  InterruptedTurn,
  Metadata,
  NewSession,
  PendingToolCalls,
  SessionId,
  SessionInfo,
  SessionPage,
  StoredSession,
  StoredTurn,
  Summary,
  TurnBegin,
  TurnCommit,
  TurnPage,
} from '@plugboard/kernel/contracts';
import { GroupCommit } from './database/group-commit.js';
import { Health } from './database/health.js';
import { type OpenedDatabase, openDatabase } from './database/open-database.js';
import { Sweeper } from './database/sweeper.js';
import { explainError } from './errors/sqlite-error.js';
import { notOpen, StoreError } from './errors/store-error.js';
import { encodeMessageList, encodeMessages } from './json/message-json.js';
import { encodeMetadata } from './json/metadata-json.js';
import { StoreTables } from './tables/store-tables.js';

export interface SqliteStoreOptions {
  /** Of the database file, absolute. */
  readonly path: string;
  /** Milliseconds from a session's last turn to its expiry. */
  readonly ttl: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What exists while the file is open. */
interface OpenStore extends OpenedDatabase {
  readonly tables: StoreTables;
  readonly writes: GroupCommit;
  readonly health: Health;
  readonly sweeper: Sweeper;
}

/**
 * Keeps sessions in a SQLite file that belongs to this process alone.
 *
 * 1. `start` opens the file and takes its lock.
 * 2. Reads are answered at once. Writes wait for the end of the tick and are committed together (group-commit.ts). What a caller was told
 *    is on disk; turns that only began or were abandoned survive the process, which is enough for them.
 * 3. From time to time some expired rows are deleted.
 * 4. `stop` commits what is queued, moves the write-ahead log into the file, and closes it.
 */
export class SqliteStore implements SessionStore, Lifecycle {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => {
      const text = encodeMessageList(messages);
      await this.#write(true, ({ pendingCalls }) => pendingCalls.save(owner, keys, text));
    },
    load: async (owner, key) => this.#read(({ pendingCalls }) => pendingCalls.load(owner, key)),
  };
  readonly documents: DocumentStore = {
    put: (id, name, text) => this.#write(true, ({ documents }) => documents.put(id, name, text)),
    get: async (project, name) => this.#read(({ documents }) => documents.get(project, name)),
    delete: (project, name) => this.#write(true, ({ documents }) => documents.delete(project, name)),
  };
  readonly idempotency: IdempotencyStore = {
    get: async (key) => this.#read(({ idempotency }) => idempotency.get(key)),
    put: (record) => this.#write(true, ({ idempotency }) => idempotency.put(record)),
  };
  readonly #options: SqliteStoreOptions;
  readonly #openDatabase: typeof openDatabase;
  #opened: OpenStore | undefined;

  /** @param open replaces `openDatabase` in tests that need the connection. */
  constructor(options: SqliteStoreOptions, open = openDatabase) {
    this.#options = options;
    this.#openDatabase = open;
  }

  /** @throws StoreError if the file cannot be used; its message says what to do. */
  start(): void {
    const { path, clock, log } = this.#options;
    const opened = this.#openDatabase(path);
    try {
      this.#opened = {
        ...opened,
        tables: new StoreTables(path, opened, clock),
        writes: new GroupCommit(opened.database),
        health: new Health(opened.database, path, clock, log),
        sweeper: this.#newSweeper(),
      };
    } catch (error) {
      opened.database.close();
      throw explainError(error, path);
    }
  }

  async load(id: SessionId): Promise<StoredSession> {
    return this.#read(({ sessions }) => sessions.load(id));
  }

  async version(id: SessionId): Promise<number> {
    return this.#read(({ sessions }) => sessions.version(id));
  }

  async begin(id: SessionId, { turnId, input }: TurnBegin): Promise<void> {
    const text = encodeMessageList(input);
    await this.#write(false, ({ turns }) => turns.begin(id, turnId, text));
  }

  async commit(id: SessionId, { turnId, expected, messages, user, idempotency: record }: TurnCommit): Promise<void> {
    const bodies = encodeMessages(messages);
    await this.#write(true, ({ sessions, turns, idempotency }) => {
      sessions.commit(id, expected, bodies, user ?? null);
      if (turnId !== undefined) turns.end(id, turnId);
      if (record) idempotency.put(record);
    });
  }

  async abandon(id: SessionId, turnId: string): Promise<void> {
    await this.#write(false, ({ turns }) => turns.end(id, turnId));
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#write(true, ({ turns }) => turns.recover());
    return this.#withoutErrors(found, 'an interrupted turn cannot be read and is skipped');
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    const text = encodeMetadata(metadata);
    const bodies = encodeMessages(messages);
    await this.#write(true, ({ sessions }) => sessions.create(id, text, bodies));
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#read(({ sessionInfo }) => sessionInfo.get(id));
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    return this.#read(({ sessionInfo }) => sessionInfo.find(project, conversation));
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    return this.#withoutErrors(
      this.#read(({ sessionInfo }) => sessionInfo.list(project, page)),
      'a session cannot be read and is left out of a list',
    );
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const text = encodeMetadata(metadata);
    await this.#write(true, ({ sessions }) => sessions.setMetadata(id, text));
  }

  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#read(({ sessions }) => sessions.turns(id, page));
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#write(false, ({ sessions }) => sessions.putSummary(id, version, { messages, text }));
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    await this.#write(true, ({ sessions }) => sessions.fork(id, key, turns));
  }

  async delete(id: SessionId): Promise<boolean> {
    const existed = await this.#write(true, ({ sessions, turns }) => {
      if (!sessions.delete(id)) return false;
      turns.deleteAll(id);
      return true;
    });
    if (existed) this.#opened?.sweeper.wake();
    return existed;
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    return this.#opened?.health.check() ?? { ok: false, reason: notOpen(this.#options.path).message };
  }

  stop(): void {
    const opened = this.#opened;
    if (!opened) return;
    this.#opened = undefined;
    opened.sweeper.stop();
    opened.writes.flush();
    try {
      opened.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch (error) {
      const err = explainError(error, this.#options.path);
      this.#options.log.warn(
        { err },
        'the write-ahead log stays beside the file and is read when it is opened again: nothing is lost',
      );
    }
    opened.database.close();
  }

  #read<T>(work: (tables: StoreTables) => T): T {
    const { tables, health } = this.#require();
    try {
      return work(tables);
    } catch (error) {
      throw health.record(explainError(error, this.#options.path));
    }
  }

  async #write<T>(isDurable: boolean, work: (tables: StoreTables) => T): Promise<T> {
    const { tables, writes, health } = this.#require();
    try {
      return await writes.write(isDurable, () => work(tables));
    } catch (error) {
      throw health.record(explainError(error, this.#options.path));
    }
  }

  #require(): OpenStore {
    if (!this.#opened) throw notOpen(this.#options.path);
    return this.#opened;
  }

  /** Returns what could be read, and logs the errors of the rest. */
  #withoutErrors<T extends object>(found: readonly (T | StoreError)[], message: string): readonly T[] {
    return found.filter((item): item is T => {
      if (item instanceof StoreError) this.#options.log.error({ err: item }, message);
      return !(item instanceof StoreError);
    });
  }

  #newSweeper(): Sweeper {
    const { clock, ttl, log } = this.#options;
    return new Sweeper(
      clock,
      () => this.#write(false, (tables) => tables.sweep(ttl)),
      (err) => log.warn({ err }, 'could not delete expired rows; will retry'),
    );
  }
}
