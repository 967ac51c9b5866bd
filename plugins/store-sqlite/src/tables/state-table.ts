import type { DatabaseSync } from 'node:sqlite';
import { type StateChange, StateFull } from '@plugboard/kernel';
import type { ExpiryClock } from '@plugboard/kernel/contracts';
import { LAST_KEY } from '@plugboard/store-kit';
import { prepareAll, type Statements } from './statements.js';

/** Maximum number of rows that one sweep deletes. */
const SWEEP_ROWS = 100;

/**
 * The table of what plugins keep in `ctx.state`. Triggers count the keys of each entry, so that no
 * change walks them.
 */
export class StateTable {
  readonly #clock: ExpiryClock;
  readonly #maxKeys: number;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync, clock: ExpiryClock, maxKeys: number = StateFull.LIMIT) {
    this.#clock = clock;
    this.#maxKeys = maxKeys;
    this.#sql = prepareAll(database, SQL);
  }

  get(entry: string, key: string): string | undefined {
    const row = this.#sql.get.get(entry, key, this.#clock.now()) as { readonly value: string } | undefined;
    return row?.value;
  }

  /** The first change that expects another value than its key has. */
  conflict(changes: readonly StateChange[]): StateChange | undefined {
    return changes.find(({ entry, key, expected }) => expected !== undefined && expected !== (this.get(entry, key) ?? null));
  }

  /** @throws StateFull. What was changed before must then be rolled back. */
  change(changes: readonly StateChange[]): void {
    for (const { entry, key, text, expiresIn } of changes) {
      const expiry = expiresIn === undefined ? null : this.#clock.stamp() + expiresIn;
      if (text === undefined) this.#sql.delete.run(entry, key);
      else this.#sql.put.run(entry, key, text, expiry);
    }
    for (const entry of new Set(changes.map((change) => change.entry))) {
      if (this.#count(entry) > this.#maxKeys) throw new StateFull(entry);
    }
  }

  list(entry: string, prefix: string, after: string | undefined, limit = -1): StateRow[] {
    // One lower bound: SQLite would walk to the second one.
    const first = after !== undefined && Buffer.compare(Buffer.from(after), Buffer.from(prefix)) > 0 ? after : prefix;
    const rows = this.#sql.list.all(entry, first, prefix + LAST_KEY, after ?? '', this.#clock.now(), limit);
    return (rows as unknown as readonly StateRow[]).map(({ key, text }) => ({ key, text }));
  }

  /** Deletes some expired keys. @returns whether there may be more. */
  sweep(): boolean {
    return this.#sql.sweep.run(this.#clock.now(), SWEEP_ROWS).changes === SWEEP_ROWS;
  }

  /** Keys that have expired are counted only where the rest may be too many. */
  #count(entry: string): number {
    const rows = Number(this.#sql.count.get(entry)?.keys ?? 0);
    return rows <= this.#maxKeys ? rows : rows - Number(this.#sql.expired.get(entry, this.#clock.now())?.keys);
  }
}

interface StateRow {
  readonly key: string;
  readonly text: string;
}

/** Keys are compared by their bytes: SQLite's default, and what `list` promises. */
const SQL = {
  get: 'SELECT value FROM state WHERE entry = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)',
  put: `INSERT INTO state (entry, key, value, expires_at) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`,
  count: 'SELECT keys FROM state_count WHERE entry = ?',
  expired: 'SELECT count(*) AS keys FROM state INDEXED BY state_by_expiry WHERE entry = ? AND expires_at <= ?',
  delete: 'DELETE FROM state WHERE entry = ? AND key = ?',
  list: `SELECT key, value AS text FROM state
    WHERE entry = ? AND key >= ? AND key <= ? AND key <> ? AND (expires_at IS NULL OR expires_at > ?)
    ORDER BY key LIMIT ?`,
  sweep: 'DELETE FROM state WHERE id IN (SELECT id FROM state WHERE expires_at <= ? LIMIT ?)',
} as const;
