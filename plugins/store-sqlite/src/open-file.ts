import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { explained, noFile, noFolder, noWal } from './errors.js';
import { assertOurs, migrate } from './schema.js';

/** What the write-ahead log is cut down to, once it has been larger, in bytes. */
const LOG_LIMIT = 16 * 1024 * 1024;

export interface OpenedFile {
  readonly database: DatabaseSync;
  /** How often the file was opened, this time included. */
  readonly opening: number;
}

/**
 * Opens the file, makes it where it is missing, and brings it to the present schema. From then on no other process can use it: the lock is
 * SQLite's own, which the system takes from a process that dies, however it dies.
 *
 * @param path absolute.
 * @throws StoreError that says what stands against it; the file is then as it was.
 */
export function openFile(path: string): OpenedFile {
  makeFolder(dirname(path));
  makeFile(path);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    // Set before the first look into the file, so that no other process gets between the looking and the lock.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    assertOurs(database, path);
    const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal') throw noWal(path, mode);
    database.exec(`PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${LOG_LIMIT}`);
    return { database, opening: countOpening(database) };
  } catch (error) {
    database?.close();
    throw explained(error, path);
  }
}

/** A write, which takes the lock, and shows whether writing is possible at all. */
function countOpening(database: DatabaseSync): number {
  database.exec('BEGIN IMMEDIATE');
  migrate(database);
  const row = database.prepare('UPDATE opening SET number = number + 1 RETURNING number').get();
  database.exec('COMMIT');
  return Number(row?.number);
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw noFolder(folder, error);
  }
}

/**
 * SQLite itself would make the file readable for everybody. One that is there is not opened here: closing it again would take away
 * the lock that another store of this process has on it.
 */
function makeFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw noFile(path, error);
  }
}
