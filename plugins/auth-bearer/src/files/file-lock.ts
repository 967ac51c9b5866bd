import { closeSync, fchownSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CommandError } from '@plugboard/kernel/contracts';

/** How long a command waits for another one, in milliseconds. */
const TIMEOUT = 10_000;

/**
 * Runs a function while holding the lock of a file. The lock is an operating system lock on a file
 * beside it, taken by way of SQLite: the system releases it when the process dies.
 *
 * @throws CommandError if another command holds the lock for too long or the folder cannot be
 * written.
 */
export async function withFileLock<T>(path: string, work: () => Promise<T>, timeout = TIMEOUT): Promise<T> {
  const database = acquire(path, timeout);
  try {
    return await work();
  } finally {
    database.close();
  }
}

function acquire(path: string, timeout: number): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    createFile(`${path}.lock`);
    database = new DatabaseSync(`${path}.lock`, { timeout });
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    throw new CommandError(
      `cannot lock ${path} (${(error as Error).message}): another command is using it, or it belongs to another user; run this command as the user of the server`,
    );
  }
}

/**
 * Creates the file for its owner alone. When run by root, it gets the owner of its folder, so that
 * commands of the server's user can take the lock later. An existing file is not opened: closing it
 * would release the lock of another command of this process.
 */
function createFile(path: string): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    const file = openSync(path, 'wx', 0o600);
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(folder);
      fchownSync(file, uid, gid);
    }
    closeSync(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
