import type { Clock, Logger, SessionStore, StateStore } from '@plugboard/kernel';
import type {
  ApprovalStore,
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
import { sessionTitle, VersionConflict } from '@plugboard/kernel/contracts';
import {
  type BadRow,
  encodeMessageList,
  encodeMessages,
  encodeMetadata,
  LocalClaims,
  readable,
  SMALLEST_TURN,
  type StoreLimits,
  Sweeper,
  sizeOf,
} from '@plugboard/store-kit';
import { Backup, type BackupOptions } from './database/backup.js';
import { GroupCommit, type WriteKind } from './database/group-commit.js';
import { Health } from './database/health.js';
import { LogSync } from './database/log-sync.js';
import { type OpenedDatabase, openDatabase } from './database/open-database.js';
import { explainError } from './errors/sqlite-error.js';
import { notOpen } from './errors/store-error.js';
import type { Fork } from './tables/fork-table.js';
import { recordSize } from './tables/idempotency-table.js';
import { ProjectUsage, type Usage } from './tables/project-usage.js';
import { sizeOfTurn } from './tables/session-table.js';
import { StoreTables } from './tables/store-tables.js';

interface SqliteStoreOptions extends StoreLimits {
  /** Of the database file, absolute. */
  readonly path: string;
  /** Absent: no backups. */
  readonly backup?: BackupOptions | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What exists while the file is open. */
interface OpenStore extends OpenedDatabase {
  readonly tables: StoreTables;
  readonly usage: ProjectUsage;
  readonly logSync: LogSync;
  readonly writes: GroupCommit;
  readonly health: Health;
  readonly sweeper: Sweeper;
  readonly backup: Backup | undefined;
}

/**
 * Keeps sessions in a SQLite file that belongs to this process alone.
 *
 * 1. `start` opens the file and takes its lock.
 * 2. Reads are answered at once. Writes of a few ticks are committed together (group-commit.ts).
 *    A write is acknowledged when it is on disk; `begin` and `abandon` when they survive the
 *    process, which is enough for them.
 * 3. From time to time some expired rows are deleted, and the file is backed up.
 * 4. `stop` commits what is queued, moves the write-ahead log into the file, and closes it.
 */
export class SqliteStore implements SessionStore {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => {
      const text = encodeMessageList(messages);
      const bytes = Buffer.byteLength(text);
      this.#assertHasRoom(owner.project, bytes);
      await this.#write('durable', ({ pendingCalls }) => pendingCalls.save(owner, keys, text));
      this.#count({ project: owner.project, bytes });
    },
    find: async (owner, keys) => this.#read(({ pendingCalls }) => pendingCalls.find(owner, keys)),
    load: async (owner, key) => this.#read(({ pendingCalls }) => pendingCalls.load(owner, key)),
  };
  readonly documents: DocumentStore = {
    put: async (id, name, text) => {
      const resized = await this.#write('durable', ({ documents, sessions }) =>
        documents.put(id, name, text).map((change) => sessions.resize(change.id, change.bytes)),
      );
      this.#count(...resized);
    },
    get: async (project, name, reserve) => this.#read(({ documents }) => documents.get(project, name, reserve)),
    delete: async (project, name) => {
      const deleted = await this.#write('durable', ({ documents, sessions }) => {
        const change = documents.delete(project, name);
        return change && { freed: sessions.resize(change.id, change.bytes), left: documents.countLike(name, change.id) };
      });
      if (deleted) this.#count(deleted.freed);
      return deleted?.left;
    },
  };
  readonly approvals: ApprovalStore = {
    get: async (project, ids, reserve) => this.#read(({ approvals }) => approvals.get(project, ids, reserve)),
    find: async (project, id) => this.#read(({ approvals }) => approvals.find(project, id)),
    waiting: async (project, page) => this.#read(({ approvals }) => approvals.waiting(project, page)),
    replace: async (read, change) => {
      const resized = await this.#write('durable', ({ approvals, sessions }) => {
        const bytes = approvals.replace(read, change);
        return bytes === undefined ? undefined : sessions.resize(read.session, bytes);
      });
      if (resized) this.#count(resized);
      return resized !== undefined;
    },
  };
  readonly idempotency: IdempotencyStore = {
    claim: (key, fingerprint, reserve) =>
      this.#claims.claim(key, fingerprint, () => this.#read(({ idempotency }) => idempotency.get(key, reserve))),
    put: async (record) => {
      this.#assertHasRoom(record.key.project, recordSize(record));
      this.#count(...(await this.#write('durable', ({ idempotency }) => idempotency.put(record))));
      this.#claims.stored(record);
    },
    release: (key) => this.#claims.release(key, async () => undefined), // a claim ends with the process
  };
  readonly state: StateStore = {
    get: async (entry, key) => this.#read(({ state }) => state.get(entry, key)),
    change: (changes) =>
      this.#write('durable', ({ state }) => {
        if (state.conflict(changes)) return false;
        state.change(changes);
        return true;
      }),
    list: async (entry, { prefix, after, limit }) => this.#read(({ state }) => state.list(entry, prefix, after, limit)),
  };
  readonly #claims = new LocalClaims();
  readonly #options: SqliteStoreOptions;
  readonly #openDatabase: typeof openDatabase;
  /** Undefined before `start` and after `stop`, which may come before the work after a write. */
  #opened: OpenStore | undefined;
  #generation = {};
  #lastSlice: Promise<unknown> = Promise.resolve();

  /** @param open replaces `openDatabase` in tests that need the connection. */
  constructor(options: SqliteStoreOptions, open = openDatabase) {
    this.#options = options;
    this.#openDatabase = open;
  }

  /** @throws StoreError if the file cannot be used; its message says what to do. */
  start(): void {
    const { path, ttl, quotas, caps, backup, clock, log } = this.#options;
    const opened = this.#openDatabase(path);
    try {
      const logSync = new LogSync(opened.database.location() ?? path);
      const tables = new StoreTables(opened, clock, ttl, caps);
      const health = new Health(opened.database, path, clock, log);
      this.#opened = {
        ...opened,
        tables,
        usage: new ProjectUsage(opened.database, quotas),
        logSync,
        writes: new GroupCommit(
          opened.database,
          () => logSync.sync(),
          () => tables.turns.running,
          (error) => health.record(explainError(error, path)),
        ),
        health,
        sweeper: this.#newSweeper(),
        backup: backup && new Backup(opened.database, backup, { clock, log }),
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

  get generation(): object {
    return this.#generation;
  }

  async begin(id: SessionId, { turnId, input, parent }: TurnBegin): Promise<void> {
    const text = encodeMessageList(input);
    this.#assertFits(id, SMALLEST_TURN);
    try {
      await this.#write('statement', ({ turns }) => turns.begin(id, turnId, text, parent));
    } catch (error) {
      this.#opened?.tables.turns.forget(turnId); // its row may have been inserted and rolled back
      throw error;
    }
  }

  async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    const { turnId, expected, messages, record, user, idempotency: answer, state: changed = [], approvals = [] } = turn;
    const stored = { bodies: encodeMessages(messages), record };
    if (turnId === undefined) this.#assertFits(id, sizeOfTurn(stored));
    const changes = await this.#write('durable', (tables) => {
      const { sessions, turns, idempotency, state } = tables;
      if (turnId === undefined) this.#generation = {};
      const titleOf = () => sessionTitle(messages);
      const added = sessions.commit(id, expected, { ...stored, parent: turns.parentOf(turnId) }, user ?? null, titleOf);
      if (turnId !== undefined) turns.end(turnId);
      const conflict = state.conflict(changed);
      if (conflict) throw new VersionConflict(expected, conflict);
      state.change(changed);
      const bytes = tables.approvals.put(id, approvals);
      const resized = bytes === 0 ? [] : [sessions.resize(id, bytes)];
      return [added, ...resized, ...(answer ? idempotency.put(answer) : [])];
    });
    this.#count(...changes);
    this.#claims.stored(answer);
    if (turnId !== undefined) this.#opened?.tables.turns.forget(turnId);
  }

  async abandon(_: SessionId, turnId: string): Promise<void> {
    await this.#write('statement', ({ turns }) => turns.end(turnId));
    this.#opened?.tables.turns.forget(turnId);
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#write('durable', ({ turns }) => turns.recover());
    return readable(found, (row) => this.#logBadRow(row, 'an interrupted turn cannot be read and is skipped'));
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    const text = encodeMetadata(metadata);
    const bodies = encodeMessages(messages);
    const bytes = Buffer.byteLength(text) + sizeOf(bodies);
    this.#assertFits(id, bytes);
    await this.#write('durable', ({ sessions }) => {
      this.#generation = {};
      sessions.create(id, text, bodies, sessionTitle(messages) ?? null);
    });
    this.#count({ project: id.project, sessions: 1, bytes });
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#read(({ sessionInfo }) => sessionInfo.get(id));
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    return this.#read(({ sessionInfo }) => sessionInfo.find(project, conversation));
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    const found = this.#read(({ sessionInfo }) => sessionInfo.list(project, page));
    return readable(found, (row) => this.#logBadRow(row, 'a session cannot be read and is left out of a list'));
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const text = encodeMetadata(metadata);
    this.#count(await this.#write('durable', ({ sessions }) => sessions.setMetadata(id, text)));
  }

  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#read(({ sessions }) => sessions.turns(id, page));
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#write('committed', ({ sessions }) => sessions.putSummary(id, version, { messages, text }));
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    const fork = await this.#write('committed', ({ forks }) => forks.begin(id, key, turns));
    if (fork) await this.#copy(fork);
  }

  async delete(id: SessionId): Promise<boolean> {
    const { existed, freed } = await this.#write('durable', ({ sessions, turns }) => {
      this.#generation = {};
      const existed = sessions.exists(id);
      const freed = [id, ...sessions.childrenOf(id)].flatMap((one) => {
        const used = sessions.delete(one);
        if (used) turns.deleteAll(one);
        return used ?? [];
      });
      return { existed, freed };
    });
    this.#count(...freed);
    if (freed.length > 0) this.#opened?.sweeper.wake();
    return existed;
  }

  /** Why the store does not work, if it does not. While it does not, it probes once a second. */
  failure(): Error | undefined {
    return this.#opened ? this.#opened.health.check() : notOpen(this.#options.path);
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    const failure = this.failure();
    return failure ? { ok: false, reason: failure.message } : { ok: true };
  }

  stop(): Promise<void> | undefined {
    const opened = this.#opened;
    if (!opened) return undefined;
    this.#opened = undefined;
    opened.sweeper.stop();
    opened.backup?.stop();
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
    void opened.logSync.close();
    return opened.backup?.close();
  }

  /**
   * Copies a fork slice by slice. What it takes is counted as it grows, so that forks that run at
   * the same time cannot exceed a quota together. Nothing is left of a fork that fails, or whose
   * source was deleted meanwhile.
   * @throws ProjectQuotaExceeded, SessionExists
   */
  async #copy(begun: Fork): Promise<void> {
    const { id, source } = begun;
    let fork = begun;
    const counted: Usage[] = [];
    const { usage, sweeper } = this.#require();
    const count = (sessions: number, bytes: number) => {
      usage.assertFits(id.project, bytes, () => sessions > 0);
      usage.add({ project: id.project, sessions, bytes });
      counted.push({ project: id.project, sessions: -sessions, bytes: -bytes });
    };
    let isFinished = false;
    try {
      if (begun.turns === source.version - source.base) this.#assertFits(id, source.bytes);
      count(1, Buffer.byteLength(source.metadata));
      while (!fork.isComplete) {
        const before = fork;
        fork = await this.#copySlice(before);
        count(0, fork.bytes - before.bytes);
      }
      isFinished = await this.#write('durable', ({ forks }) => {
        this.#generation = {};
        return forks.finish(fork);
      });
    } finally {
      if (!isFinished) {
        for (const one of counted) usage.add(one);
        // If this fails too, the sweeper finds the fork when the file is opened again.
        await this.#write('committed', ({ forks }) => forks.cancel(fork)).catch(() => {});
        sweeper.wake();
      }
    }
  }

  /** Copies slices of forks one at a time: several in one transaction would add up. */
  #copySlice(fork: Fork): Promise<Fork> {
    const copied = this.#lastSlice.then(() => this.#write('committed', ({ forks }) => forks.copy(fork)));
    this.#lastSlice = copied.catch(() => {}); // thrown to the fork that it belongs to
    return copied;
  }

  /** @throws ProjectQuotaExceeded if the project cannot store so many bytes more in the session. */
  #assertFits(id: SessionId, bytes: number): void {
    this.#require().usage.assertFits(id.project, bytes, () => !this.#read(({ sessions }) => sessions.exists(id)));
  }

  /** @throws ProjectQuotaExceeded without room for so many bytes beside the sessions. */
  #assertHasRoom(project: string, bytes: number): void {
    this.#require().usage.assertFits(project, bytes, () => false);
  }

  /** Counts what projects store more or less than before. */
  #count(...changes: readonly Usage[]): void {
    for (const change of changes) this.#opened?.usage.add(change);
  }

  #read<T>(work: (tables: StoreTables) => T): T {
    const { tables, health } = this.#require();
    try {
      return work(tables);
    } catch (error) {
      throw health.record(explainError(error, this.#options.path));
    }
  }

  /** Rejects with a StoreError, or with what the work throws. */
  #write<T>(kind: WriteKind, work: (tables: StoreTables) => T): Promise<T> {
    const opened = this.#opened;
    if (!opened) return Promise.reject(notOpen(this.#options.path));
    return opened.writes.write(kind, () => work(opened.tables));
  }

  #require(): OpenStore {
    if (!this.#opened) throw notOpen(this.#options.path);
    return this.#opened;
  }

  #logBadRow(row: BadRow, message: string): void {
    this.#options.log.error({ err: explainError(row, this.#options.path) }, message);
  }

  /** @returns whether there may be more to delete. */
  async #sweep(): Promise<boolean> {
    const { hasMore, freed } = await this.#write('committed', (tables) => {
      const swept = tables.sweep();
      if (swept.freed.length > 0) this.#generation = {};
      return swept;
    });
    this.#count(...freed);
    return hasMore;
  }

  #newSweeper(): Sweeper {
    const { clock, log } = this.#options;
    return new Sweeper(
      clock,
      () => this.#sweep(),
      (err) => log.warn({ err }, 'could not delete expired rows; will retry'),
    );
  }
}
