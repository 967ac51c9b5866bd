import type { DatabaseSync } from 'node:sqlite';
import { foreignFile, newerSchema } from '../errors/store-error.js';
import { MIGRATIONS } from './migrations.js';

/** Marks the file as this plugin's in its header: `PLGB`. */
const APPLICATION_ID = 0x504c4742;

/** Checks whose file it is, and its schema. @throws StoreError for another's, or a newer one. */
export function assertOwnFile(database: DatabaseSync, path: string): void {
  const version = pragma(database, 'user_version');
  const isNew = version === 0 && pragma(database, 'application_id') === 0 && isEmpty(database);
  if (isNew) return;
  if (pragma(database, 'application_id') !== APPLICATION_ID) throw foreignFile(path);
  if (version > MIGRATIONS.length) throw newerSchema(path, version, MIGRATIONS.length);
}

/** Applies the migrations that the file has not had, inside the caller's transaction. */
export function migrate(database: DatabaseSync): void {
  for (const migration of MIGRATIONS.slice(pragma(database, 'user_version'))) {
    if (typeof migration === 'string') database.exec(migration);
    else migration(database);
  }
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${MIGRATIONS.length}`);
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}
