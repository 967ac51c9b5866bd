import type { SharedStore } from '@plugboard/kernel/contracts';
import { Database } from '../database/database.js';
import { toColumn } from './columns.js';

type RateUses = Parameters<SharedStore['count']>[0];

/** The table of buckets of a minute. */
export class RateTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** A statement whose answer is lost counts twice, which limits a little too early. */
  async count(uses: RateUses): Promise<readonly number[]> {
    const names = uses.map(({ name }) => toColumn(name));
    const values = [names, uses.map(({ perMinute }) => perMinute), uses.map(({ requests }) => requests)];
    const rows = await this.#database.run<{ readonly name: string; readonly excess: number }>(SQL, values);
    const excess = new Map(rows.map((row) => [row.name, row.excess]));
    return names.map((name) => excess.get(name) ?? 0);
  }
}

const SQL = `WITH given AS (
    SELECT name, max(per_minute) AS per_minute, sum(requests) AS requests
    FROM unnest($1::text[], $2::float8[], $3::float8[]) AS one (name, per_minute, requests) GROUP BY name ORDER BY name)
  INSERT INTO plugboard.rate AS bucket (name, per_minute, used, counted_at)
  SELECT name, per_minute, requests, ${Database.NOW} FROM given
  ON CONFLICT (name) DO UPDATE SET per_minute = excluded.per_minute, counted_at = excluded.counted_at,
    used = excluded.used + greatest(0,
      bucket.used - greatest(0, excluded.counted_at - bucket.counted_at) * excluded.per_minute / 60000)
  RETURNING name, greatest(0, used - per_minute) AS excess`;
