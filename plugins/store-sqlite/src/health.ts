import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Logger } from '@plugboard/kernel';
import { explained, StoreError, type StoreErrorCode } from './errors.js';

/** What keeps the store from working, rather than one turn from being kept. */
const TROUBLES: ReadonlySet<StoreErrorCode> = new Set(['disk_full', 'io', 'read_only', 'corrupt']);

/** What is written to see whether there is room again, in bytes: as much as a few turns take. */
const PROBE_BYTES = 64 * 1024;
/** Milliseconds between two such writes, however often anyone asks. */
const PROBE_PAUSE = 1_000;

/**
 * Whether the store can work. A write that fails for want of room, or of a disk, makes it unwell; it is well again when a write of
 * some size succeeds, which is tried when someone asks. A damaged file does not mend itself.
 */
export class Health {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #trouble: StoreError | undefined;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(database: DatabaseSync, path: string, clock: Clock, log: Logger) {
    this.#database = database;
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
  }

  /** Takes note of what was thrown, and gives it back. */
  noted(error: unknown): unknown {
    if (!(error instanceof StoreError && TROUBLES.has(error.code))) return error;
    if (!this.#trouble) this.#log.error({ err: error }, 'the session store cannot work');
    this.#trouble = error;
    return error;
  }

  now(): { readonly ok: boolean; readonly reason?: string } {
    if (this.#trouble && this.#trouble.code !== 'corrupt') this.#probe();
    return this.#trouble ? { ok: false, reason: this.#trouble.message } : { ok: true };
  }

  #probe(): void {
    const now = this.#clock.monotonic();
    if (now - this.#probedAt < PROBE_PAUSE) return;
    this.#probedAt = now;
    try {
      // Two transactions: pages that come and go within one never reach the disk.
      this.#database.exec(`INSERT OR REPLACE INTO probe (id, filler) VALUES (1, randomblob(${PROBE_BYTES}))`);
      this.#database.exec('DELETE FROM probe');
      this.#trouble = undefined;
      this.#log.info('the session store works again');
    } catch (error) {
      this.noted(explained(error, this.#path));
    }
  }
}
