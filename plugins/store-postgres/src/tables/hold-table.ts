import type { Database } from '../database/database.js';
import { toColumn } from './columns.js';

/** The table of names that one holder has alone. A row counts while its server lives. */
export class HoldTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @returns whether the holder has the name now */
  async take(name: string, replica: number, holder: string): Promise<boolean> {
    return (await this.#database.run(SQL.take, [toColumn(name), replica, holder])).length > 0;
  }

  async release(name: string, holder: string): Promise<void> {
    await this.#database.run(SQL.release, [toColumn(name), holder]);
  }
}

const SQL = {
  take: `INSERT INTO plugboard.hold (name, replica, holder)
    SELECT $1, id, $3 FROM plugboard.replica WHERE id = $2 AND expires_at > clock_timestamp()
    ON CONFLICT (name) DO UPDATE SET replica = excluded.replica, holder = excluded.holder
      WHERE hold.holder = excluded.holder OR NOT EXISTS (
        SELECT FROM plugboard.replica WHERE replica.id = hold.replica AND expires_at > clock_timestamp())
    RETURNING name`,
  release: 'DELETE FROM plugboard.hold WHERE name = $1 AND holder = $2',
} as const;
