/** A row that this server did not write, before its error names the database. */
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

/** Returns what could be read, and passes the errors of the rest on. */
export function readable<T extends object>(found: readonly (T | BadRow)[], onBadRow: (row: BadRow) => void): readonly T[] {
  return found.filter((item): item is T => {
    if (item instanceof BadRow) onBadRow(item);
    return !(item instanceof BadRow);
  });
}

/** Something that could not be read back. Nothing of it was stored. */
export class Unstorable extends Error {
  override readonly name = 'Unstorable';
  readonly code: 'bad_message' | 'bad_metadata';

  constructor(code: Unstorable['code'], message: string) {
    super(message);
    this.code = code;
  }
}
