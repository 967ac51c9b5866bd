import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CommandError } from '@plugboard/kernel';

/** Milliseconds that a command waits for another one. */
const PATIENCE = 10_000;

/**
 * Does something while no other command does anything to the same file. The lock is one of the system's on a file beside it, by way of SQLite:
 * the system takes it from a process that dies, however it dies, so that none is ever left behind.
 *
 * @throws CommandError where another command has it for too long, or the folder cannot be written to.
 */
export async function withLock<T>(path: string, work: () => Promise<T>, patience = PATIENCE): Promise<T> {
  const database = lockedOrThrown(path, patience);
  try {
    return await work();
  } finally {
    database.close();
  }
}

function lockedOrThrown(path: string, patience: number): DatabaseSync {
  let database: DatabaseSync | undefined;
  try {
    makeFile(`${path}.lock`);
    database = new DatabaseSync(`${path}.lock`, { timeout: patience });
    database.exec('BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    throw new CommandError(
      `cannot lock ${path} (${(error as Error).message}): another command is at it, or this is not the user that the server runs as`,
    );
  }
}

/** Makes the file for its owner alone. One that is there is not opened: closing it would take the lock away from another command of this process. */
function makeFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
