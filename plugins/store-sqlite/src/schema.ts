import type { DatabaseSync } from 'node:sqlite';
import { foreignFile, newerSchema } from './errors.js';
import { STEPS } from './schema-steps.js';

/** Stands in the head of the file and says whose it is: `PLGB`. */
const APPLICATION_ID = 0x504c4742;

/**
 * Looks whose file it is, and of which schema. Only reads.
 * @throws StoreError where it belongs to another program, or to a newer version of this plugin.
 */
export function assertOurs(database: DatabaseSync, path: string): void {
  const version = pragma(database, 'user_version');
  const isNew = version === 0 && pragma(database, 'application_id') === 0 && isEmpty(database);
  if (isNew) return;
  if (pragma(database, 'application_id') !== APPLICATION_ID) throw foreignFile(path);
  if (version > STEPS.length) throw newerSchema(path, version, STEPS.length);
}

/** Takes the steps that the file has not had, inside the caller's transaction. */
export function migrate(database: DatabaseSync): void {
  for (const step of STEPS.slice(pragma(database, 'user_version'))) {
    if (typeof step === 'string') database.exec(step);
    else step(database);
  }
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${STEPS.length}`);
}

function isEmpty(database: DatabaseSync): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined;
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}
