import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Clock, IdempotencyKey, IdempotencyRecord } from '@plugboard/kernel';

const DAY = 24 * 60 * 60_000;
/** As the contract of all stores says. */
const MOST_KEYS = 100_000;
/** What one step of sweeping deletes at most. */
const SWEEP_KEYS = 100;

/**
 * What was answered under idempotency keys, as it stands in the file. Works as `SessionFile` does: each method in one go, and those that write
 * inside the caller's transaction.
 */
export class IdempotencyFile {
  readonly #clock: Clock;
  readonly #get: StatementSync;
  readonly #put: StatementSync;
  readonly #forgetOldest: StatementSync;
  readonly #sweep: StatementSync;

  constructor(database: DatabaseSync, clock: Clock) {
    this.#clock = clock;
    this.#get = database.prepare(
      'SELECT fingerprint, answer FROM idempotency WHERE project = ? AND route = ? AND key = ? AND expires_at > ?',
    );
    this.#put = database.prepare(
      `INSERT INTO idempotency (project, route, key, fingerprint, answer, expires_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET fingerprint = excluded.fingerprint, answer = excluded.answer, expires_at = excluded.expires_at`,
    );
    // Ids grow by one with each new key, so that nothing need be counted.
    this.#forgetOldest = database.prepare('DELETE FROM idempotency WHERE id <= (SELECT max(id) FROM idempotency) - ?');
    this.#sweep = database.prepare(
      'DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency WHERE expires_at <= ? LIMIT ?)',
    );
  }

  get(key: IdempotencyKey): IdempotencyRecord | undefined {
    const row = this.#get.get(...columns(key), this.#now()) as { fingerprint: string; answer: string | null } | undefined;
    return row && { key, fingerprint: row.fingerprint, result: row.answer === null ? 'began' : { text: row.answer } };
  }

  put({ key, fingerprint, result }: IdempotencyRecord): void {
    this.#put.run(...columns(key), fingerprint, result === 'began' ? null : result.text, this.#now() + DAY);
    this.#forgetOldest.run(MOST_KEYS);
  }

  /** One small step of deleting what has expired. @returns whether there may be more to delete. */
  sweep(): boolean {
    return this.#sweep.run(this.#now(), SWEEP_KEYS).changes === SWEEP_KEYS;
  }

  /** Stamps are whole numbers, which a clock need not give. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }
}

function columns({ project, route, key }: IdempotencyKey): [string, string, string] {
  return [project, route, key];
}
