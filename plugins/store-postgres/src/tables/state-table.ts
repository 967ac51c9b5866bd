import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import { LAST_KEY } from '@plugboard/store-kit';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';

/** The table of what plugins keep in `ctx.state`. Keys are valid texts, stored as they are. */
export class StateTable implements StateStore {
  readonly #database: Database;
  readonly #maxKeys: number;
  /** At least the number of keys of each entry, as far as this server knows. */
  readonly #counts = new Map<string, number>();

  constructor(database: Database, maxKeys: number = StateFull.LIMIT) {
    this.#database = database;
    this.#maxKeys = maxKeys;
  }

  async get(entry: string, key: string): Promise<string | undefined> {
    const [row] = await this.#database.run<{ readonly value: string }>(SQL.get, [entry, key]);
    return row?.value;
  }

  async change(changes: readonly StateChange[]): Promise<boolean> {
    const columns = stateColumns(changes);
    const apply = (query: Query) => this.apply(query, columns, () => new Conflict());
    // The same changes lead to the same state: looking for them is repeating them. Not so those
    // that compare, which then find their own.
    const repeat = async (query: Query) => {
      await apply(query);
      return true;
    };
    try {
      await this.#database.transaction(apply, columns.compared.length === 0 ? repeat : undefined);
      return true;
    } catch (error) {
      if (error instanceof Conflict) return false;
      throw error;
    }
  }

  async list(
    entry: string,
    { prefix, after, limit }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    return this.#database.run(SQL.list, [entry, prefix, prefix + LAST_KEY, after ?? '', limit ?? null]);
  }

  /**
   * Applies changes inside a transaction.
   * @param conflict makes the error for a change that expects another value than its key has.
   * @throws StateFull
   */
  async apply(
    query: Query,
    { entries, compared, deleted, put }: StateColumns,
    conflict: (change: StateChange) => Error,
  ): Promise<void> {
    for (const change of compared) {
      const rows = await query(...compareAndChange(change));
      if (rows.length === 0) throw conflict(change);
      if (change.text !== undefined && change.expected === null) await this.#count(query, change.entry, 1);
    }
    if (deleted[0].length > 0) await query(SQL.delete, deleted);
    if (put[0].length === 0) return;
    const added = await query<{ readonly entry: string; readonly n: number }>(SQL.put, put);
    for (const { entry, n } of added) if (entries.has(entry)) await this.#count(query, entry, n);
  }

  /** Keys of other servers, and those that have expired, are counted from time to time. */
  recount(): void {
    this.#counts.clear();
  }

  /** Counts keys that were added. The rows are counted only where there may be too many. */
  async #count(query: Query, entry: string, added: number): Promise<void> {
    const known = this.#counts.get(entry);
    const count = known === undefined ? await this.#keysOf(query, entry) : known + added;
    this.#counts.set(entry, count);
    if (count <= this.#maxKeys) return;
    const exact = await this.#keysOf(query, entry);
    this.#counts.set(entry, exact);
    if (exact > this.#maxKeys) throw new StateFull(entry);
  }

  async #keysOf(query: Query, entry: string): Promise<number> {
    const [row] = await query<{ readonly n: number }>(SQL.count, [entry]);
    return row?.n ?? 0;
  }
}

/** A change expects another value than its key has. */
class Conflict extends Error {}

/** Changes as columns: of several of one key, the last one. */
export interface StateColumns {
  /** Those that expect a value, in the order in which they lock their rows. */
  readonly compared: readonly StateChange[];
  readonly entries: ReadonlySet<string>;
  readonly deleted: readonly [readonly string[], readonly string[]];
  readonly put: readonly [readonly string[], readonly string[], readonly string[], readonly (number | null)[]];
}

export function stateColumns(changes: readonly StateChange[]): StateColumns {
  const byKey = Map.groupBy(changes, ({ entry, key }) => JSON.stringify([entry, key]));
  const last = [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, own]) => lastOf(own));
  const compared = last.filter(({ expected }) => expected !== undefined);
  const others = last.filter(({ expected }) => expected === undefined);
  const put = others.filter(({ text }) => text !== undefined);
  const deleted = others.filter(({ text }) => text === undefined);
  return {
    compared,
    entries: new Set(put.map(({ entry }) => entry)),
    deleted: [deleted.map(({ entry }) => entry), deleted.map(({ key }) => key)],
    put: [
      put.map(({ entry }) => entry),
      put.map(({ key }) => key),
      put.map(({ text }) => text ?? ''),
      put.map(({ expiresIn }) => expiresIn ?? null),
    ],
  };
}

/** The last change of a key, with the value that the key has before the first one. */
function lastOf(own: readonly StateChange[]): readonly StateChange[] {
  const expected = own.find((change) => change.expected !== undefined)?.expected;
  return own.slice(-1).map((change) => ({ ...change, expected }));
}

/** One statement that compares and changes, and returns a row if it did. */
function compareAndChange({ entry, key, text, expiresIn, expected }: StateChange): [text: string, values: readonly unknown[]] {
  if (text === undefined) {
    return expected === null ? [SQL.isAbsent, [entry, key]] : [SQL.compareAndDelete, [entry, key, expected]];
  }
  return expected === null
    ? [SQL.setFirst, [entry, key, text, expiresIn ?? null]]
    : [SQL.compareAndSet, [entry, key, text, expiresIn ?? null, expected]];
}

const LIVE = `(expires_at IS NULL OR expires_at > ${Database.NOW})`;

const SQL = {
  get: `SELECT value FROM plugboard.state WHERE entry = $1 AND key = $2 AND ${LIVE}`,
  delete: `DELETE FROM plugboard.state USING unnest($1::text[], $2::text[]) AS gone (gone_entry, gone_key)
    WHERE entry = gone_entry AND key = gone_key`,
  put: `WITH given AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS one (entry, key, value, ttl)),
    before AS (SELECT entry, key FROM plugboard.state JOIN given USING (entry, key)),
    stored AS (
      INSERT INTO plugboard.state (entry, key, value, expires_at)
      SELECT entry, key, value, ${Database.NOW} + ttl FROM given ORDER BY entry, key
      ON CONFLICT (entry, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at)
    SELECT entry, count(*) AS n FROM given WHERE (entry, key) NOT IN (SELECT entry, key FROM before) GROUP BY entry`,
  setFirst: `INSERT INTO plugboard.state (entry, key, value, expires_at) VALUES ($1, $2, $3, ${Database.NOW} + $4::bigint)
    ON CONFLICT (entry, key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
    WHERE state.expires_at <= ${Database.NOW} RETURNING entry`,
  compareAndSet: `UPDATE plugboard.state SET value = $3, expires_at = ${Database.NOW} + $4::bigint
    WHERE entry = $1 AND key = $2 AND value = $5 AND ${LIVE} RETURNING entry`,
  compareAndDelete: `DELETE FROM plugboard.state WHERE entry = $1 AND key = $2 AND value = $3 AND ${LIVE} RETURNING entry`,
  isAbsent: `SELECT WHERE NOT EXISTS (SELECT FROM plugboard.state WHERE entry = $1 AND key = $2 AND ${LIVE})`,
  count: `SELECT count(*) AS n FROM plugboard.state WHERE entry = $1 AND ${LIVE}`,
  list: `SELECT key, value AS text FROM plugboard.state
    WHERE entry = $1 AND key >= $2 AND key <= $3 AND key > $4 AND ${LIVE} ORDER BY key LIMIT $5::bigint`,
} as const;
