import type { Database } from '../database/database.js';
import { fromColumn, toColumn } from './columns.js';

/** Texts of an offer that come together. */
export interface LiveTexts {
  readonly offer: string;
  /** From 1, without gaps. 0: the offer is gone. */
  readonly place: number;
  /** None: the offer has ended. */
  readonly texts: readonly string[];
}

/** Reads no more of an offer. */
export const PAST_END = 2 ** 31 - 1;
/** Rows that are read at once. */
const MAX_ROWS = 50;

/**
 * The tables of topics that servers read, and of the texts that others write for them. A crash of
 * PostgreSQL empties both: readers say again what they read, and see that an offer is gone.
 */
export class LiveTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Which of these topics another server reads. */
  async wanted(topics: readonly string[], replica: number): Promise<ReadonlySet<string>> {
    const columns = new Map(topics.map((topic) => [toColumn(topic), topic]));
    const rows = await this.#database.run<{ readonly topic: string }>(SQL.wanted, [[...columns.keys()], replica]);
    return new Set(rows.map(({ topic }) => columns.get(topic) ?? ''));
  }

  /** Adds texts. @returns false if those before are gone */
  async add(topic: string, { offer, place, texts }: LiveTexts, replica: number): Promise<boolean> {
    const values = [toColumn(topic), offer, place, replica, texts.map(toColumn)];
    return (await this.#database.run(SQL.add, values)).length > 0;
  }

  async remove(topic: string, offer: string): Promise<void> {
    await this.#database.run(SQL.remove, [toColumn(topic), offer]);
  }

  /** Reads on in the offers of other servers, and says that this server reads the topic. */
  async next(topic: string, replica: number, read: ReadonlyMap<string, number>): Promise<readonly LiveTexts[]> {
    const values = [toColumn(topic), replica, [...read.keys()], [...read.values()], MAX_ROWS];
    const rows = await this.#database.run<LiveTexts>(SQL.next, values);
    return rows.map((row) => ({ ...row, texts: row.texts.map(fromColumn) }));
  }

  async leave(topic: string, replica: number): Promise<void> {
    await this.#database.run(SQL.leave, [toColumn(topic), replica]);
  }
}

/** Whether the server of a row is alive. */
const ALIVE = (table: 'interest' | 'live') => `EXISTS (
    SELECT FROM plugboard.replica WHERE replica.id = ${table}.replica AND expires_at > clock_timestamp())`;

const SQL = {
  wanted: `SELECT DISTINCT topic FROM plugboard.interest WHERE topic = ANY ($1::text[]) AND replica <> $2 AND ${ALIVE('interest')}`,
  add: `INSERT INTO plugboard.live (topic, offer, place, replica, texts)
    SELECT $1, $2, $3::int, $4, $5::text[]
    WHERE $3::int = 1 OR EXISTS (SELECT FROM plugboard.live WHERE topic = $1 AND offer = $2 AND place = $3::int - 1)
    ON CONFLICT (topic, offer, place) DO UPDATE SET texts = excluded.texts RETURNING place`,
  remove: 'DELETE FROM plugboard.live WHERE topic = $1 AND offer = $2',
  next: `WITH reads AS (
      INSERT INTO plugboard.interest (topic, replica) SELECT $1, $2::bigint
      WHERE NOT EXISTS (SELECT FROM plugboard.interest WHERE topic = $1 AND replica = $2) ON CONFLICT DO NOTHING),
    read AS (SELECT * FROM unnest($3::text[], $4::int[]) AS one (known, last))
    (SELECT offer, place, texts FROM plugboard.live LEFT JOIN read ON known = offer
      WHERE topic = $1 AND live.replica <> $2 AND place > coalesce(last, 0) AND ${ALIVE('live')}
      ORDER BY offer, place LIMIT $5)
    UNION ALL
    SELECT known, 0, '{}' FROM read WHERE last < ${PAST_END} AND NOT EXISTS (
      SELECT FROM plugboard.live WHERE topic = $1 AND offer = known AND ${ALIVE('live')})`,
  leave: 'DELETE FROM plugboard.interest WHERE topic = $1 AND replica = $2',
} as const;
