import type { DatabaseSync, StatementSync } from 'node:sqlite';

interface Write {
  readonly job: () => unknown;
  readonly isDurable: boolean;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Group commit: writes of one tick share one transaction, and so one `fsync`. Each has a savepoint and can fail on its own.
 *
 * If the transaction fails as a whole (a full disk), each write is retried alone, so that one large write does not fail the small ones.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #save: StatementSync;
  readonly #rollbackToSave: StatementSync;
  readonly #release: StatementSync;
  #queue: Write[] = [];
  #scheduled: NodeJS.Immediate | undefined;
  /** The current setting of `synchronous`: FULL when the file is opened. */
  #isDurable = true;

  constructor(database: DatabaseSync) {
    this.#database = database;
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#rollback = database.prepare('ROLLBACK');
    this.#save = database.prepare('SAVEPOINT one');
    this.#rollbackToSave = database.prepare('ROLLBACK TO one');
    this.#release = database.prepare('RELEASE one');
  }

  /**
   * Runs a job inside a transaction. Resolves when it is committed.
   *
   * @param isDurable whether it must survive a power failure. Otherwise it survives a killed process only and waits for no `fsync`.
   * @param job synchronous. Runs a second time if the transaction failed as a whole; the first run is then rolled back.
   */
  write<T>(isDurable: boolean, job: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#queue.push({ job, isDurable, resolve, reject });
    this.#scheduled ??= setImmediate(() => this.flush());
    return promise;
  }

  /** Commits everything in the queue now. */
  flush(): void {
    clearImmediate(this.#scheduled);
    this.#scheduled = undefined;
    const group = this.#queue;
    this.#queue = [];
    if (group.length > 0 && !this.#settle(group) && group.length > 1) for (const write of group) this.#settle([write]);
  }

  /** @returns false if the transaction of several writes failed as a whole; they are still unsettled then. */
  #settle(group: readonly Write[]): boolean {
    try {
      const outcomes = this.#transaction(group);
      for (const [i, outcome] of outcomes.entries()) {
        if ('error' in outcome) group[i]?.reject(outcome.error);
        else group[i]?.resolve(outcome.value as never);
      }
      return true;
    } catch (error) {
      if (group.length === 1) group[0]?.reject(error);
      return false;
    }
  }

  #transaction(group: readonly Write[]): readonly Outcome[] {
    this.#setDurability(group.some(({ isDurable }) => isDurable));
    this.#begin.run();
    try {
      const outcomes = group.map(({ job }) => this.#attempt(job));
      this.#commit.run();
      return outcomes;
    } catch (error) {
      if (this.#database.isTransaction) this.#rollback.run();
      throw error;
    }
  }

  #attempt(job: () => unknown): Outcome {
    this.#save.run();
    try {
      const value = job();
      this.#release.run();
      return { value };
    } catch (error) {
      if (!this.#database.isTransaction) throw error; // SQLite has rolled back the whole transaction
      this.#rollbackToSave.run();
      this.#release.run();
      return { error };
    }
  }

  /** Sets the pragma before the transaction, and only when it changes, because it is parsed each time. */
  #setDurability(isDurable: boolean): void {
    if (this.#isDurable === isDurable) return;
    this.#database.exec(`PRAGMA synchronous = ${isDurable ? 'FULL' : 'NORMAL'}`);
    this.#isDurable = isDurable;
  }
}
