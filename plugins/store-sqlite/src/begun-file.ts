import type { Clock, InterruptedTurn, SessionId } from '@plugboard/kernel';
import { badRow, StoreError } from './errors.js';
import type { OpenedFile } from './open-file.js';
import { columns, prepareAll, type Statements, stamp } from './statements.js';
import { decodedList } from './stored-message.js';

/** Turns that run, and those that were interrupted, as they stand in the file. */
export class BegunFile {
  readonly #path: string;
  readonly #opening: number;
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, { database, opening }: OpenedFile, clock: Clock) {
    this.#path = path;
    this.#opening = opening;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /** @param input a list of messages as JSON. */
  begin(id: SessionId, turnId: string, input: string): void {
    const now = stamp(this.#clock);
    this.#sql.begin.run(...columns(id), turnId, this.#opening, now, input);
    this.#sql.useSession.run(now, ...columns(id)); // so that it is not swept while the turn runs
  }

  end(id: SessionId, turnId: string): void {
    this.#sql.end.run(turnId, ...columns(id));
  }

  /**
   * Marks the turns of dead processes as interrupted, and tells of each once: in the place of one whose input cannot be read stands the error.
   * They stay in the file as long as a session would.
   */
  recover(): readonly (InterruptedTurn | StoreError)[] {
    const rows = this.#sql.interrupt.all(stamp(this.#clock), this.#opening) as unknown as readonly (SessionId & InterruptedRow)[];
    return rows.map(({ project, agent, key, turn_id, rowid, input }) => {
      try {
        const messages = decodedList(input, (fault) => badRow(this.#path, `the input of turn row ${rowid}`, fault));
        return { id: { project, agent, key }, turnId: turn_id, input: messages };
      } catch (error) {
        if (error instanceof StoreError) return error;
        throw error;
      }
    });
  }

  /** Whatever became of them. */
  forgetAll(id: SessionId): void {
    this.#sql.forget.run(...columns(id));
  }
}

interface InterruptedRow {
  readonly rowid: number;
  readonly turn_id: string;
  readonly input: string;
}

const SQL = {
  begin: 'INSERT INTO turn (project, agent, key, turn_id, opening, began_at, input) VALUES (?, ?, ?, ?, ?, ?, ?)',
  useSession: 'UPDATE session SET used_at = ? WHERE project = ? AND agent = ? AND key = ?',
  end: 'DELETE FROM turn WHERE turn_id = ? AND project = ? AND agent = ? AND key = ? AND interrupted_at IS NULL',
  interrupt: `UPDATE turn SET interrupted_at = ? WHERE interrupted_at IS NULL AND opening < ?
    RETURNING rowid, project, agent, key, turn_id, input`,
  forget: 'DELETE FROM turn WHERE project = ? AND agent = ? AND key = ?',
} as const;
