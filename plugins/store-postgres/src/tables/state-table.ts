import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import type { Query } from '../database/connection-pool.js';
import { Database } from '../database/database.js';

/** After every key that starts with a prefix: keys have at most 512 bytes. */
const LAST_KEY = '\u{10ffff}'.repeat(128);

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

  async change(changes: readonly StateChange[]): Promise<void> {
    const columns = stateColumns(changes);
    // The same changes lead to the same state: looking for them is repeating them.
    const repeat = async (query: Query) => {
      await this.apply(query, columns);
      return true;
    };
    await this.#database.transaction((query) => this.apply(query, columns), repeat);
  }

  async compareAndSet({ entry, key, text, expiresIn }: StateChange, expected: string | undefined): Promise<boolean> {
    const [sql, values] =
      text === undefined
        ? expected === undefined
          ? ([SQL.isAbsent, [entry, key]] as const)
          : ([SQL.compareAndDelete, [entry, key, expected]] as const)
        : expected === undefined
          ? ([SQL.setFirst, [entry, key, text, expiresIn ?? null]] as const)
          : ([SQL.compareAndSet, [entry, key, text, expiresIn ?? null, expected]] as const);
    return this.#database.transaction(async (query) => {
      const rows = await query(sql, values);
      if (rows.length > 0 && text !== undefined && expected === undefined) await this.#count(query, entry, 1);
      return rows.length > 0;
    });
  }

  async list(
    entry: string,
    { prefix, after, limit }: Parameters<StateStore['list']>[1],
  ): Promise<readonly { readonly key: string; readonly text: string }[]> {
    return this.#database.run(SQL.list, [entry, prefix, prefix + LAST_KEY, after ?? '', limit ?? null]);
  }

  /** Applies changes inside a transaction. @throws StateFull */
  async apply(query: Query, { entries, deleted, put }: StateColumns): Promise<void> {
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

/** Changes as columns: of several of one key, the last one. */
export interface StateColumns {
  readonly entries: ReadonlySet<string>;
  readonly deleted: readonly [readonly string[], readonly string[]];
  readonly put: readonly [readonly string[], readonly string[], readonly string[], readonly (number | null)[]];
}

export function stateColumns(changes: readonly StateChange[]): StateColumns {
  const last = [...new Map(changes.map((change) => [JSON.stringify([change.entry, change.key]), change])).values()];
  const put = last.filter(({ text }) => text !== undefined);
  const deleted = last.filter(({ text }) => text === undefined);
  return {
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
