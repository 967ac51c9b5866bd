import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { explainError } from '../errors/sqlite-error.js';
import { cannotCreateFile, cannotCreateFolder, walUnavailable } from '../errors/store-error.js';
import { assertOwnFile, migrate } from './schema.js';

/**
 * Pages in the write-ahead log at which it is moved into the file. Pages that many turns change,
 * such as those of indexes, are then moved once for all of them.
 */
const WAL_PAGES = 4_000;
/** The write-ahead log is truncated to this size: a little more than `WAL_PAGES`, in bytes. */
const WAL_LIMIT = 20 * 1024 * 1024;

export interface OpenedDatabase {
  readonly database: DatabaseSync;
  /** How many times the file has been opened, including this time. */
  readonly opening: number;
}

/**
 * Opens the file, creates it if it is missing, and migrates it to the current schema. From then on
 * no other process can use it: the lock is SQLite's own, which the operating system releases when
 * the process dies.
 *
 * @param path absolute.
 * @throws StoreError if the file cannot be used. It is then unchanged.
 */
export function openDatabase(path: string): OpenedDatabase {
  createFolder(dirname(path));
  createFile(path);
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path);
    // Set before the first read, so that no other process gets in between reading and locking.
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    assertOwnFile(database, path);
    const mode = database.prepare('PRAGMA journal_mode = WAL').get()?.journal_mode;
    if (mode !== 'wal') throw walUnavailable(path, mode);
    database.exec(
      `PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${WAL_LIMIT}; PRAGMA wal_autocheckpoint = ${WAL_PAGES}`,
    );
    const opening = migrateAndCount(database);
    database.exec('PRAGMA synchronous = NORMAL'); // GroupCommit syncs what must survive a power failure
    return { database, opening };
  } catch (error) {
    database?.close();
    throw explainError(error, path);
  }
}

/** A write: it takes the lock and proves that writing is possible. */
function migrateAndCount(database: DatabaseSync): number {
  database.exec('BEGIN IMMEDIATE');
  migrate(database);
  const row = database.prepare('UPDATE opening SET number = number + 1 RETURNING number').get();
  database.exec('COMMIT');
  return Number(row?.number);
}

function createFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw cannotCreateFolder(folder, error);
  }
}

/** SQLite would let everybody read it. An existing file stays shut: closing it drops the lock. */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw cannotCreateFile(path, error);
  }
}
