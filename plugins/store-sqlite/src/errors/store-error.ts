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

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
