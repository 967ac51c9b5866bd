import type { DatabaseSync } from 'node:sqlite';
import { type StateChange, StateFull } from '@plugboard/kernel';
import { prepareAll, type Statements } from './statements.js';

/** The table of what plugins keep in `ctx.state`. */
export class StateTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  get(entry: string, key: string): string | undefined {
    const row = this.#sql.get.get(entry, key) as { readonly value: string } | undefined;
    return row?.value;
  }

  /** @throws StateFull. What was changed before must then be rolled back. */
  change(changes: readonly StateChange[]): void {
    // Counted once for each entry: SQLite walks all its keys.
    const counts = new Map<string, number>();
    for (const { entry, key, text } of changes) {
      if (text !== undefined && this.#sql.replace.run(text, entry, key).changes > 0) continue;
      const count = counts.get(entry) ?? Number(this.#sql.count.get(entry)?.count);
      if (text === undefined) counts.set(entry, count - Number(this.#sql.delete.run(entry, key).changes));
      else if (count >= StateFull.LIMIT) throw new StateFull(entry);
      else {
        this.#sql.insert.run(entry, key, text);
        counts.set(entry, count + 1);
      }
    }
  }

  list(entry: string, prefix: string, after: string | undefined, limit = -1): StateRow[] {
    const rows = this.#sql.list.all(entry, prefix, after ?? null, after ?? null, prefix, prefix, limit);
    return (rows as unknown as readonly StateRow[]).map(({ key, text }) => ({ key, text }));
  }
}

interface StateRow {
  readonly key: string;
  readonly text: string;
}

/** Keys are compared by their bytes: SQLite's default, and what `list` promises. */
const SQL = {
  get: 'SELECT value FROM state WHERE entry = ? AND key = ?',
  replace: 'UPDATE state SET value = ? WHERE entry = ? AND key = ?',
  insert: 'INSERT INTO state (entry, key, value) VALUES (?, ?, ?)',
  count: 'SELECT count(*) AS count FROM state WHERE entry = ?',
  delete: 'DELETE FROM state WHERE entry = ? AND key = ?',
  list: `SELECT key, value AS text FROM state
    WHERE entry = ? AND key >= ? AND (? IS NULL OR key > ?) AND substr(key, 1, length(?)) = ?
    ORDER BY key LIMIT ?`,
} as const;
