import type { Clock } from '@plugboard/kernel';
import type { InterruptedTurn, SessionId } from '@plugboard/kernel/contracts';
import type { OpenedDatabase } from '../database/open-database.js';
import { badRow, StoreError } from '../errors/store-error.js';
import { decodeMessageList } from '../json/message-json.js';
import { columns, prepareAll, type Statements, timestamp } from './statements.js';

/** The table of running and interrupted turns. */
export class TurnTable {
  readonly #path: string;
  readonly #opening: number;
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, { database, opening }: OpenedDatabase, clock: Clock) {
    this.#path = path;
    this.#opening = opening;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /** @param input a list of messages as JSON. */
  begin(id: SessionId, turnId: string, input: string): void {
    const now = timestamp(this.#clock);
    this.#sql.begin.run(...columns(id), turnId, this.#opening, now, input);
    this.#sql.useSession.run(now, ...columns(id)); // so that it does not expire while the turn runs
  }

  end(id: SessionId, turnId: string): void {
    this.#sql.end.run(turnId, ...columns(id));
  }

  /**
   * Marks the turns of dead processes as interrupted and returns each once. A turn whose input cannot be read is returned as the error.
   * The rows expire like sessions.
   */
  recover(): readonly (InterruptedTurn | StoreError)[] {
    const rows = this.#sql.interrupt.all(timestamp(this.#clock), this.#opening) as unknown as readonly (SessionId &
      InterruptedRow)[];
    return rows.map(({ project, agent, key, turn_id, rowid, input }) => {
      try {
        const messages = decodeMessageList(input, (problem) => badRow(this.#path, `the input of turn row ${rowid}`, problem));
        return { id: { project, agent, key }, turnId: turn_id, input: messages };
      } catch (error) {
        if (error instanceof StoreError) return error;
        throw error;
      }
    });
  }

  /** Deletes the turns of a session, running or interrupted. */
  deleteAll(id: SessionId): void {
    this.#sql.deleteAll.run(...columns(id));
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
  deleteAll: 'DELETE FROM turn WHERE project = ? AND agent = ? AND key = ?',
} as const;
