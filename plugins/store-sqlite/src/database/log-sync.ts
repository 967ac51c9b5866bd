import { close, fdatasync, openSync } from 'node:fs';

/**
 * Syncs the write-ahead log to disk without blocking the process. Together with
 * `synchronous = NORMAL` this gives commits the durability of `synchronous = FULL`, which is the
 * same sync inside COMMIT (https://sqlite.org/pragma.html#pragma_synchronous).
 */
export class LogSync {
  readonly #file: number;
  #running: Promise<void> | undefined;
  /** The sync after the running one, which may have begun before the latest commit. */
  #next: Promise<void> | undefined;

  /** @param path of the database as SQLite names it. The log exists since the first write. */
  constructor(path: string) {
    this.#file = openSync(`${path}-wal`, 'r+');
  }

  /** Resolves when everything that was committed before the call is on disk. */
  sync(): Promise<void> {
    if (!this.#running) return this.#start();
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  /** Closes the file when the last sync has ended. */
  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => {}); // reported to the writes that wait for it
    close(this.#file);
  }

  #start(): Promise<void> {
    this.#next = undefined;
    this.#running = new Promise<void>((resolve, reject) => {
      fdatasync(this.#file, (error) => {
        this.#running = undefined;
        if (error) reject(error);
        else resolve();
      });
    });
    return this.#running;
  }
}
