export type StoreErrorCode =
  | 'not_open'
  | 'refused'
  | 'unsupported'
  | 'foreign_schema'
  | 'newer_schema'
  | 'no_lease'
  | 'unreachable'
  | 'read_only'
  | 'disk_full'
  | 'unknown_outcome'
  | 'bad_row'
  | 'postgres';

/** A failure of the database, and what to do. The message has neither a session nor a password. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export const notOpen = () =>
  new StoreError('not_open', 'the session store is not open: it has not started yet, or it has stopped');

/** Between the end of this server's row, by its own clock, and its next one. */
export const noLease = () =>
  new StoreError('no_lease', 'this server has lost its lease, and is taking a new one: it serves no sessions until then');

export const tooOld = (found: string) =>
  new StoreError('unsupported', `PostgreSQL ${found} is too old: version 14 or newer is needed`);

export const notUtf8 = (found: string) =>
  new StoreError('unsupported', `the database has the encoding ${found}: create it with ENCODING 'UTF8'`);

export const foreignSchema = (schema: string) =>
  new StoreError(
    'foreign_schema',
    `the schema "${schema}" has tables of another program and was not changed: set \`schema\` to another name`,
  );

export const newerSchema = (schema: string, found: number, known: number) =>
  new StoreError(
    'newer_schema',
    `the schema "${schema}" was written by a newer version of this plugin (schema ${found}; this version supports up to ${known}) ` +
      'and was not changed: install the newer version again, or set `schema` to another name',
  );

export const unknownOutcome = (cause: unknown) =>
  new StoreError('unknown_outcome', 'the connection was lost during COMMIT, and it is unknown whether the change was stored', {
    cause,
  });
