export type StoreErrorCode =
  | 'not_open'
  | 'locked'
  | 'read_only'
  | 'cannot_open'
  | 'foreign_file'
  | 'newer_schema'
  | 'corrupt'
  | 'disk_full'
  | 'io'
  | 'bad_row'
  | 'bad_message'
  | 'bad_metadata'
  | 'sqlite';

/** What went wrong with the file, and what to do about it. Its message names the file, and nobody's session. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export const notOpen = (path: string) =>
  new StoreError('not_open', `the session store ${path} is not open: it has not started yet, or was stopped`);

export const noFolder = (folder: string, cause: unknown) =>
  new StoreError(
    'cannot_open',
    `the folder ${folder} cannot be made (${reasonOf(cause)}): make it yourself, or set \`path\` to a file in a folder that the server may write to`,
    { cause },
  );

export const noFile = (path: string, cause: unknown) =>
  new StoreError(
    'cannot_open',
    `${path} cannot be made (${reasonOf(cause)}): let the server's user write to its folder, or set \`path\` to another file`,
    { cause },
  );

export const foreignFile = (path: string) =>
  new StoreError(
    'foreign_file',
    `${path} is a SQLite file of another program, and was left as it is: set \`path\` to a file of its own`,
  );

export const newerSchema = (path: string, found: number, known: number) =>
  new StoreError(
    'newer_schema',
    `${path} was written by a newer version of this plugin (schema ${found}; this one knows up to ${known}), and was left as it is: ` +
      'install the newer version again, or set `path` to another file',
  );

export const noWal = (path: string, mode: unknown) =>
  new StoreError(
    'cannot_open',
    `${path} cannot be kept with a write-ahead log (SQLite gave "${mode}"): set \`path\` to a file on a local disk`,
  );

/** A row that is not what this plugin writes. `place` says where it stands, for whoever looks at the file. */
export const badRow = (path: string, place: string, fault: string) =>
  new StoreError(
    'bad_row',
    `${path}: ${place} ${fault}. Only the session that it belongs to is affected: mend the row or delete the session, or restore a backup`,
  );

export const badMessage = (place: number, fault: string) =>
  new StoreError('bad_message', `message ${place} of the turn ${fault}, and would not be read back: the turn was not kept`);

export const badMetadata = (fault: string) =>
  new StoreError('bad_metadata', `the metadata ${fault}, and would not be read back: nothing was changed`);

/** By SQLite's result codes (https://sqlite.org/rescode.html): an extended one where it means something of its own, else the primary one, its lowest byte. */
const MEANINGS: Readonly<Record<number, readonly [StoreErrorCode, string]>> = {
  3: ['read_only', "may not be used by the server's user: let it read and write the file and its folder"],
  5: [
    'locked',
    'is in use by another process: one SQLite file serves one server at a time. Stop the other one, or give each a `path` of its own',
  ],
  8: ['read_only', "can be read but not written: let the server's user write to the file and to its folder"],
  10: ['io', 'could not be read or written: look at the disk, and at the system log'],
  11: ['corrupt', 'is damaged: stop the server and restore a backup, or rescue what is left with `sqlite3 FILE .recover`'],
  13: ['disk_full', 'has no room to grow, for the disk is full: make room there. What was kept can still be read'],
  14: ['cannot_open', "cannot be opened: let the server's user read and write the file and its folder"],
  26: ['corrupt', 'is no SQLite file: restore a backup, or set `path` to another file'],
  3850: ['read_only', "cannot be locked for writing: let the server's user write to the file and to its folder, on a local disk"],
};

/** What a throw of SQLite's means; any other throw comes back as it is. */
export function explained(error: unknown, path: string): unknown {
  if (!isSqliteError(error)) return error;
  const [code, meaning] = MEANINGS[error.errcode] ??
    MEANINGS[error.errcode & 0xff] ?? ['sqlite', 'is not as this plugin left it, or could not be used'];
  return new StoreError(code, `${path} ${meaning} (SQLite ${error.errcode}: ${error.message})`, { cause: error });
}

interface SqliteError extends Error {
  /** The extended result code; its lowest byte is the primary one. */
  readonly errcode: number;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number';
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
