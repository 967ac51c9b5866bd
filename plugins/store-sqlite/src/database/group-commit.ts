import type { DatabaseSync, StatementSync } from 'node:sqlite';

/**
 * When a write resolves:
 *
 * - `durable`: when its commit is synced, and survives a power failure.
 * - `committed`: when it is committed, and survives a killed process.
 * - `statement`: as `committed`, for a job that writes with one statement only. Alone in its group,
 *   it needs no `BEGIN` and `COMMIT`.
 */
export type WriteKind = 'durable' | 'committed' | 'statement';

interface Write {
  readonly kind: WriteKind;
  readonly job: () => unknown;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Ticks of the event loop that a group waits for further writes, and then for further commits
 * before its sync. A tick takes a microsecond or two on an idle server, and as long as its work on
 * a busy one: groups grow with the load without a timer.
 */
export const GROUP_TICKS = 4;
export const SYNC_TICKS = 8;

/**
 * Group commit: writes of a few ticks share one transaction, and those of a few more ticks one sync
 * of the write-ahead log, which costs more.
 *
 * A group is first run without savepoints, which is cheapest. If a job fails, the group runs again
 * with a savepoint for each job, so that only that job fails. If the transaction fails as a whole
 * (a full disk), each write runs again in its own transaction, so that one large write does not
 * fail the small ones.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #sync: () => Promise<void>;
  readonly #running: () => number;
  readonly #explain: (error: unknown) => unknown;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #save: StatementSync;
  readonly #rollbackToSave: StatementSync;
  readonly #release: StatementSync;
  #queue: Write[] = [];
  /** Set while the queue waits for further writes. */
  #groupTick: NodeJS.Immediate | undefined;
  /** Durable writes that are committed and wait for a sync. */
  #unsynced: Committed[] = [];
  /** Set while they wait for further ones. */
  #syncTick: NodeJS.Immediate | undefined;

  /**
   * @param database with `synchronous = NORMAL`: a commit survives a killed process.
   * @param sync makes all earlier commits survive a power failure.
   * @param running returns the number of turns that have begun and not ended.
   * @param explain returns the error for the caller of a write that failed.
   */
  constructor(
    database: DatabaseSync,
    sync: () => Promise<void>,
    running: () => number,
    explain: (error: unknown) => unknown = (error) => error,
  ) {
    this.#database = database;
    this.#sync = sync;
    this.#running = running;
    this.#explain = explain;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#rollback = database.prepare('ROLLBACK');
    this.#save = database.prepare('SAVEPOINT one');
    this.#rollbackToSave = database.prepare('ROLLBACK TO one');
    this.#release = database.prepare('RELEASE one');
  }

  /**
   * Runs a job inside a transaction. Resolves when `kind` says.
   *
   * @param job synchronous. May run up to three times; the earlier runs are rolled back.
   */
  write<T>(kind: WriteKind, job: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#queue.push({ kind, job, resolve, reject });
    if (!this.#groupTick) this.#waitForGroup(GROUP_TICKS);
    return promise;
  }

  /** Commits everything in the queue now, and starts the sync. */
  flush(): void {
    this.#commitQueue();
    clearImmediate(this.#syncTick);
    this.#syncTick = undefined;
    const committed = this.#unsynced;
    if (committed.length === 0) return;
    this.#unsynced = [];
    void this.#settleWhenSynced(committed);
  }

  /** Waits one tick if no other turn is running that could write meanwhile. */
  #waitForGroup(ticks: number): void {
    this.#groupTick = setImmediate(() => {
      if (ticks > 1 && this.#running() > this.#queue.length) return this.#waitForGroup(ticks - 1);
      this.#commitQueue();
      if (this.#unsynced.length > 0 && !this.#syncTick) this.#waitForSync(SYNC_TICKS);
    });
  }

  /** Does not wait if no other turn is running that could end meanwhile. */
  #waitForSync(ticks: number): void {
    if (ticks === 0 || this.#running() <= this.#unsynced.length) this.flush();
    else this.#syncTick = setImmediate(() => this.#waitForSync(ticks - 1));
  }

  #commitQueue(): void {
    clearImmediate(this.#groupTick);
    this.#groupTick = undefined;
    const group = this.#queue;
    if (group.length === 0) return;
    this.#queue = [];
    for (const committed of this.#commitAll(group)) {
      if (committed.write.kind === 'durable') this.#unsynced.push(committed);
      else committed.write.resolve(committed.value);
    }
  }

  /** Returns the writes that were committed; the others are rejected. */
  #commitAll(group: readonly Write[]): readonly Committed[] {
    try {
      return group.length === 1 && group[0]?.kind === 'statement' ? group.map(run) : this.#transaction(() => group.map(run));
    } catch (error) {
      if (group.length === 1) {
        group[0]?.reject(this.#explain(error));
        return [];
      }
    }
    try {
      return this.#transaction(() => group.flatMap((write) => this.#attempt(write)));
    } catch {
      return group.flatMap((write) => this.#commitAll([write]));
    }
  }

  #transaction(work: () => readonly Committed[]): readonly Committed[] {
    this.#begin.run();
    try {
      const committed = work();
      this.#commit.run();
      return committed;
    } catch (error) {
      if (this.#database.isTransaction) this.#rollback.run();
      throw error;
    }
  }

  /** Runs a job in a savepoint. Rejects its write if it fails. */
  #attempt(write: Write): readonly Committed[] {
    this.#save.run();
    try {
      const committed = run(write);
      this.#release.run();
      return [committed];
    } catch (error) {
      if (!this.#database.isTransaction) throw error; // SQLite has rolled back the whole transaction
      this.#rollbackToSave.run();
      this.#release.run();
      write.reject(this.#explain(error));
      return [];
    }
  }

  async #settleWhenSynced(committed: readonly Committed[]): Promise<void> {
    try {
      await this.#sync();
      for (const { write, value } of committed) write.resolve(value);
    } catch (error) {
      const explained = this.#explain(error);
      for (const { write } of committed) write.reject(explained);
    }
  }
}

interface Committed {
  readonly write: Write;
  readonly value: never;
}

function run(write: Write): Committed {
  return { write, value: write.job() as never };
}
