import { closeSync, fstatSync, mkdirSync, openSync, read, renameSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';

/** Milliseconds after which a backup that failed is tried again. */
const RETRY_INTERVAL = 10 * 60_000;
/** The longest wait of one timer: timers of Node.js end at 24 days. */
const MAX_WAIT = 24 * 60 * 60_000;

export interface BackupOptions {
  /** Of the backup, absolute. */
  readonly path: string;
  /** Milliseconds from one backup to the next. */
  readonly every: number;
}

/** Bytes that are copied at a time. */
const CHUNK = 1024 * 1024;

const readChunk = promisify(read);

/**
 * Copies the database to another file from time to time, while it is in use.
 *
 * 1. The first copy is made at the start, unless the existing one is recent enough.
 * 2. The write-ahead log is moved into the file, which is then a complete database, and stays as it
 *    is while it is copied: what is written meanwhile stays in the log.
 * 3. The copy replaces the previous one when it is complete and on disk.
 *
 * SQLite's own online backup (https://sqlite.org/backup.html) fails when a step meets an open
 * transaction of the connection, and holds up writes for as long as the copy is synced.
 */
export class Backup {
  readonly #database: DatabaseSync;
  /** Of the database. Open as long as it: closing it earlier would release SQLite's lock. */
  readonly #file: number;
  readonly #options: BackupOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(database: DatabaseSync, options: BackupOptions, { clock, log }: { clock: Clock; log: Logger }) {
    this.#database = database;
    this.#file = openSync(database.location() ?? '', 'r');
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

  /** Call it after the database was closed. Resolves when the file is closed, too. */
  async close(): Promise<void> {
    await this.#running;
    closeSync(this.#file);
  }

  /** @param due milliseconds since 1970. */
  #wait(due: number): void {
    if (this.#isStopped) return;
    const ms = Math.min(Math.max(0, due - this.#clock.now()), MAX_WAIT);
    this.#timer = this.#clock.after(ms, () => (this.#clock.now() < due ? this.#wait(due) : this.#begin()));
  }

  #begin(): void {
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
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
    const before = this.#database.prepare('PRAGMA wal_autocheckpoint').get()?.wal_autocheckpoint;
    try {
      this.#checkpoint();
      this.#database.exec('PRAGMA wal_autocheckpoint = 0');
      const unchanged = this.#signature();
      await this.#copyTo(temporary);
      if (this.#isStopped) return 0;
      if (this.#signature() !== unchanged) throw new Error('the file was changed while it was copied');
      renameSync(temporary, path);
      await sync(dirname(path));
      return statSync(path).size;
    } finally {
      if (!this.#isStopped) this.#database.exec(`PRAGMA wal_autocheckpoint = ${before}`);
      rmSync(temporary, { force: true });
    }
  }

  /** Moves the write-ahead log into the file. @throws Error if something of it had to stay. */
  #checkpoint(): void {
    const { busy, log, checkpointed } = this.#database.prepare('PRAGMA wal_checkpoint(FULL)').get() ?? {};
    if (busy !== 0 || log !== checkpointed) throw new Error('the database is being read');
  }

  async #copyTo(path: string): Promise<void> {
    const copy = await open(path, 'wx', 0o600);
    try {
      const chunk = Buffer.alloc(CHUNK);
      for (let place = 0; !this.#isStopped; ) {
        const { bytesRead } = await readChunk(this.#file, chunk, 0, CHUNK, place);
        if (bytesRead === 0) break;
        await copy.writeFile(chunk.subarray(0, bytesRead));
        place += bytesRead;
      }
      await copy.sync();
    } finally {
      await copy.close();
    }
  }

  /** Changes whenever something is written to the file. */
  #signature(): string {
    const { size, mtimeNs } = fstatSync(this.#file, { bigint: true });
    return `${size} ${mtimeNs}`;
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
