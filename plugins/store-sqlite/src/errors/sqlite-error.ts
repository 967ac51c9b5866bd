import { BadRow } from '@plugboard/store-kit';
import { cannotSync, StoreError, type StoreErrorCode } from './store-error.js';

/**
 * By SQLite's result codes (https://sqlite.org/rescode.html): an extended code if it has its own
 * meaning, otherwise the primary code, which is its lowest byte.
 */
const MEANINGS: Readonly<Record<number, readonly [StoreErrorCode, string]>> = {
  3: ['read_only', "cannot be used by the server's user: give it read and write access to the file and its folder"],
  5: [
    'locked',
    'is in use by another process: one SQLite file serves one server at a time. Stop the other one, or give each its own `path`',
  ],
  8: ['read_only', "can be read but not written: give the server's user write access to the file and its folder"],
  10: ['io', 'could not be read or written: check the disk and the system log'],
  11: ['corrupt', 'is damaged: stop the server and restore a backup, or recover what is left with `sqlite3 FILE .recover`'],
  13: ['disk_full', 'cannot grow because the disk is full: free some space. What is stored can still be read'],
  14: ['cannot_open', "cannot be opened: give the server's user read and write access to the file and its folder"],
  26: ['corrupt', 'is not a SQLite file: restore a backup, or set `path` to another file'],
  3850: [
    'read_only',
    "cannot be locked for writing: give the server's user write access to the file and its folder, on a local disk",
  ],
};

const OTHER = ['sqlite', 'does not have the expected content, or could not be used: restore a backup, or report this'] as const;

/** Turns an error of SQLite or of a row into a `StoreError`. Returns any other error unchanged. */
export function explainError(error: unknown, path: string): unknown {
  if (error instanceof BadRow) return new StoreError('bad_row', `${path}: ${error.message}`, { cause: error });
  if (isSystemError(error)) return cannotSync(path, error);
  if (!isSqliteError(error)) return error;
  const [code, meaning] = MEANINGS[error.errcode] ?? MEANINGS[error.errcode & 0xff] ?? OTHER;
  return new StoreError(code, `${path} ${meaning} (SQLite ${error.errcode}: ${error.message})`, { cause: error });
}

/** An error of the operating system, from the sync of the write-ahead log. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'errno' in error;
}

interface SqliteError extends Error {
  /** The extended result code. */
  readonly errcode: number;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
}
