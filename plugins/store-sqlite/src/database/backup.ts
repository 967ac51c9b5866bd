import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backup, type DatabaseSync } from 'node:sqlite';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Milliseconds after which a backup that failed is tried again. */
const RETRY_INTERVAL = 10 * 60_000;
/** The longest wait of one timer: timers of Node.js end at 24 days. */
const LONGEST_WAIT = 24 * 60 * 60_000;

export interface BackupOptions {
  /** Of the backup, absolute. */
  readonly path: string;
  /** Milliseconds from one backup to the next. */
  readonly every: number;
}

/**
 * Copies the database to another file from time to time, while it is in use.
 *
 * 1. The first copy is made at the start, unless the existing one is recent enough.
 * 2. SQLite copies some pages at a time on another thread. What is written meanwhile is in the copy,
 *    too (https://sqlite.org/backup.html).
 * 3. The copy replaces the previous one when it is complete and on disk.
 */
export class Backup {
  readonly #database: DatabaseSync;
  readonly #options: BackupOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(database: DatabaseSync, options: BackupOptions, { clock, log }: { clock: Clock; log: Logger }) {
    this.#database = database;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#wait(this.#lastBackup() + options.every);
  }

  /** Call it before the database is closed. A copy that is being made is dropped. */
  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** @param due milliseconds since 1970. */
  #wait(due: number): void {
    if (this.#isStopped) return;
    const ms = Math.min(Math.max(0, due - this.#clock.now()), LONGEST_WAIT);
    this.#timer = this.#clock.after(ms, () => (this.#clock.now() < due ? this.#wait(due) : void this.#run()));
  }

  async #run(): Promise<void> {
    const { path, every } = this.#options;
    const begun = this.#clock.monotonic();
    try {
      const bytes = await this.#copy();
      if (this.#isStopped) return;
      this.#log.info({ path, bytes, duration_ms: Math.round(this.#clock.monotonic() - begun) }, 'backed up the sessions');
      this.#wait(this.#clock.now() + every);
    } catch (err) {
      if (this.#isStopped) return;
      this.#log.error({ err, path }, 'could not back up the sessions; will retry');
      this.#wait(this.#clock.now() + Math.min(every, RETRY_INTERVAL));
    }
  }

  /** Returns the size of the copy. */
  async #copy(): Promise<number> {
    const { path } = this.#options;
    const temporary = `${path}.tmp`;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    rmSync(temporary, { force: true }); // of a process that was killed
    closeSync(openSync(temporary, 'wx', 0o600)); // SQLite itself would make it readable for everybody
    try {
      await backup(this.#database, temporary);
      if (this.#isStopped) return 0;
      await sync(temporary);
      renameSync(temporary, path);
      await sync(dirname(path));
      return statSync(path).size;
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  #lastBackup(): number {
    return statSync(this.#options.path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
