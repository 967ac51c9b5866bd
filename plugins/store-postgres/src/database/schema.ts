import { foreignSchema, newerSchema, notUtf8, tooOld } from '../errors/store-error.js';
import type { Query } from './connection-pool.js';
import { MIGRATIONS, OLDEST } from './migrations.js';

/** The oldest PostgreSQL that is tested, as `server_version_num`. */
const MIN_VERSION = 140_000;
/** Lets one server at a time look at the schema and change it. */
const LOCK = `SELECT pg_advisory_xact_lock(hashtext('plugboard'), hashtext($1))`;

/** Checks the database. Changes nothing. @throws StoreError */
export async function assertSupported(query: Query): Promise<void> {
  const [found] = await query<{ readonly number: number; readonly version: string; readonly encoding: string }>(
    `SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS version,
      current_setting('server_encoding') AS encoding`,
  );
  if (!found || found.number < MIN_VERSION) throw tooOld(found?.version ?? 'of unknown version');
  if (found.encoding !== 'UTF8') throw notUtf8(found.encoding);
}

/**
 * Brings the schema up to date inside the caller's transaction, which has the lock from then on. A
 * schema that is missing is created; a user who may not do that needs one of its own.
 * @throws StoreError if the schema is another program's, or newer than this release supports
 */
export async function migrate(query: Query, schema: string): Promise<void> {
  await query(LOCK, [schema]);
  const [found] = await query<{ readonly exists: boolean; readonly tables: number; readonly meta: number }>(
    `SELECT to_regnamespace($1) IS NOT NULL AS exists, count(c.oid) AS tables,
      count(a.attname) FILTER (WHERE c.relname = 'meta') AS meta
    FROM (SELECT 1) AS one LEFT JOIN pg_class c ON c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'v', 'm', 'p')
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'oldest'`,
    [schema],
  );
  if (!found?.exists) await query(`CREATE SCHEMA "${schema}"`);
  const isEmpty = (found?.tables ?? 0) === 0;
  if (!isEmpty && found?.meta !== 1) throw foreignSchema(schema);
  const [meta] = isEmpty
    ? []
    : await query<{ readonly version: number; readonly oldest: number }>('SELECT version, oldest FROM plugboard.meta');
  if (meta && meta.oldest > MIGRATIONS.length) throw newerSchema(schema, meta.oldest, MIGRATIONS.length);
  const version = meta?.version ?? 0;
  if (version >= MIGRATIONS.length) return;
  for (const migration of MIGRATIONS.slice(version)) await query(migration);
  if (meta) await query('UPDATE plugboard.meta SET version = $1, oldest = greatest(oldest, $2)', [MIGRATIONS.length, OLDEST]);
  else await query('INSERT INTO plugboard.meta VALUES ($1, $2)', [MIGRATIONS.length, OLDEST]);
}
