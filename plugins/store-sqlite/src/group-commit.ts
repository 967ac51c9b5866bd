import type { DatabaseSync, StatementSync } from 'node:sqlite';

interface Write {
  readonly job: () => unknown;
  readonly isDurable: boolean;
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/**
 * Writes that come within one tick share one transaction, and so one wait for the disk. Each of them has a savepoint, and fails on its own.
 *
 * Where something fails that takes the whole transaction with it (a full disk), each of the writes is tried again alone, so that
 * a large one does not cost the small ones their turns.
 */
export class GroupCommit {
  readonly #database: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #save: StatementSync;
  readonly #rollbackToSave: StatementSync;
  readonly #release: StatementSync;
  #waiting: Write[] = [];
  #due: NodeJS.Immediate | undefined;
  /** What `synchronous` stands at: FULL, as the file was opened. */
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
   * Does the job inside a transaction, and resolves when that is written.
   *
   * @param isDurable whether it must survive a power cut. Otherwise it survives the death of the process, and costs no wait for the disk.
   * @param job writes, in one go. It is done again where the transaction was lost, and then finds the file as it was before.
   */
  write<T>(isDurable: boolean, job: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#waiting.push({ job, isDurable, resolve, reject });
    this.#due ??= setImmediate(() => this.flush());
    return promise;
  }

  /** Writes what waits, now. */
  flush(): void {
    clearImmediate(this.#due);
    this.#due = undefined;
    const group = this.#waiting;
    this.#waiting = [];
    if (group.length > 0 && !this.#settle(group) && group.length > 1) for (const write of group) this.#settle([write]);
  }

  /** @returns whether all know what became of them. Several do not where their transaction failed as a whole. */
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
    this.#synchronise(group.some(({ isDurable }) => isDurable));
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
      if (!this.#database.isTransaction) throw error; // SQLite has taken back everything
      this.#rollbackToSave.run();
      this.#release.run();
      return { error };
    }
  }

  /** Cannot be set within a transaction, and is parsed each time: so only where it changes. */
  #synchronise(isDurable: boolean): void {
    if (this.#isDurable === isDurable) return;
    this.#database.exec(`PRAGMA synchronous = ${isDurable ? 'FULL' : 'NORMAL'}`);
    this.#isDurable = isDurable;
  }
}
