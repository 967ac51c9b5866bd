import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Logger } from '@plugboard/kernel';
import { explainError } from '../errors/sqlite-error.js';
import { StoreError, type StoreErrorCode } from '../errors/store-error.js';

/** Errors that concern the store as a whole and not one turn. */
const STORE_FAILURES: ReadonlySet<StoreErrorCode> = new Set(['disk_full', 'io', 'read_only', 'corrupt']);

/** Bytes written to find out whether there is space again: about as much as a few turns. */
const PROBE_BYTES = 64 * 1024;
/** Minimum time between two probes, in milliseconds. */
const PROBE_INTERVAL = 1_000;

/**
 * Whether the store works. A write that fails because of the disk makes it unhealthy. It becomes
 * healthy again when a probe write succeeds, which is tried when the health is queried. A damaged
 * file stays unhealthy.
 */
export class Health {
  readonly #database: DatabaseSync;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #failure: StoreError | undefined;
  #probedAt = Number.NEGATIVE_INFINITY;

  constructor(database: DatabaseSync, path: string, clock: Clock, log: Logger) {
    this.#database = database;
    this.#path = path;
    this.#clock = clock;
    this.#log = log;
  }

  /** Records an error, if it concerns the store as a whole. @returns the error. */
  record(error: unknown): unknown {
    if (!(error instanceof StoreError && STORE_FAILURES.has(error.code))) return error;
    if (!this.#failure) this.#log.error({ err: error }, 'the session store does not work');
    this.#failure = error;
    return error;
  }

  /** @returns why the store does not work, if it does not. */
  check(): StoreError | undefined {
    if (this.#failure && this.#failure.code !== 'corrupt') this.#probe();
    return this.#failure;
  }

  #probe(): void {
    const now = this.#clock.monotonic();
    if (now - this.#probedAt < PROBE_INTERVAL) return;
    this.#probedAt = now;
    try {
      // Two transactions: pages that are added and removed within one never reach the disk.
      this.#database.exec(`INSERT OR REPLACE INTO probe (id, filler) VALUES (1, randomblob(${PROBE_BYTES}))`);
      this.#database.exec('DELETE FROM probe');
      this.#failure = undefined;
      this.#log.info('the session store works again');
    } catch (error) {
      this.record(explainError(error, this.#path));
    }
  }
}
