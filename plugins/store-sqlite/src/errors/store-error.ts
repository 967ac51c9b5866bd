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

/** A failure of the file, and what to do. The message names the file and never a session. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export const notOpen = (path: string) =>
  new StoreError('not_open', `the session store ${path} is not open: it has not started yet, or it has stopped`);

export const cannotCreateFolder = (folder: string, cause: unknown) =>
  new StoreError(
    'cannot_open',
    `the folder ${folder} cannot be created (${reasonOf(cause)}): create it, or set \`path\` to a file in a folder that the server can write to`,
    { cause },
  );

export const cannotCreateFile = (path: string, cause: unknown) =>
  new StoreError(
    'cannot_open',
    `${path} cannot be created (${reasonOf(cause)}): give the server's user write access to its folder, or set \`path\` to another file`,
    { cause },
  );

export const foreignFile = (path: string) =>
  new StoreError('foreign_file', `${path} is a SQLite file of another program and was not changed: set \`path\` to another file`);

export const newerSchema = (path: string, found: number, known: number) =>
  new StoreError(
    'newer_schema',
    `${path} was written by a newer version of this plugin (schema ${found}; this version supports up to ${known}) and was not changed: ` +
      'install the newer version again, restore the backup from before the upgrade, or set `path` to another file',
  );

export const walUnavailable = (path: string, mode: unknown) =>
  new StoreError(
    'cannot_open',
    `${path} does not support a write-ahead log (SQLite chose journal mode "${mode}"): set \`path\` to a file on a local disk`,
  );

/** The system could not bring the write-ahead log to disk. */
export const cannotSync = (path: string, cause: NodeJS.ErrnoException) =>
  new StoreError(
    cause.code === 'ENOSPC' || cause.code === 'EDQUOT' ? 'disk_full' : 'io',
    `${path}-wal could not be synced to disk (${cause.message}): check the disk and the system log. It is unknown whether the write was stored`,
    { cause },
  );

/** A row that this plugin did not write, before the file is named (`explainError`). */
export class BadRow extends Error {
  /** @param place names the row for an operator. */
  constructor(place: string, problem: string) {
    super(
      `${place} ${problem}. Only the session it belongs to is affected: repair the row, delete the session, or restore a backup`,
    );
  }
}

/** Returns the error of a row that cannot be read, so that the others can. */
export function tryRow<T>(read: () => T): T | BadRow {
  try {
    return read();
  } catch (error) {
    if (error instanceof BadRow) return error;
    throw error;
  }
}

export const badMessage = (place: number, problem: string) =>
  new StoreError('bad_message', `message ${place} of the turn ${problem}, so it could not be read back: the turn was not stored`);

export const badMetadata = (problem: string) =>
  new StoreError('bad_metadata', `the metadata ${problem}, so it could not be read back: nothing was changed`);

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
