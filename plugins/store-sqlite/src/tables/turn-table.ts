import type { ExpiryClock, InterruptedTurn, SessionId } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessageList, tryRow } from '@plugboard/store-kit';
import type { OpenedDatabase } from '../database/open-database.js';
import { columns, prepareAll, type Statements } from './statements.js';

/** The table of running and interrupted turns: few rows, and no index with running turns. */
export class TurnTable {
  readonly #opening: number;
  readonly #clock: ExpiryClock;
  /** The row ids of turns that this process began, by their ids. */
  readonly #rows = new Map<string, number | bigint>();
  /** What the sessions of these turns belong to, by the ids of the turns. */
  readonly #parents = new Map<string, SessionId>();
  readonly #sql: Statements<keyof typeof SQL>;

  constructor({ database, opening }: OpenedDatabase, clock: ExpiryClock) {
    this.#opening = opening;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /** The number of turns that this process began and that have not ended. */
  get running(): number {
    return this.#rows.size;
  }

  /**
   * @param input a list of messages as JSON.
   * @param parent what the session belongs to.
   */
  begin(id: SessionId, turnId: string, input: string, parent: SessionId | undefined): void {
    const { lastInsertRowid } = this.#sql.begin.run(...columns(id), turnId, this.#opening, this.#clock.stamp(), input);
    this.#rows.set(turnId, lastInsertRowid);
    if (parent) this.#parents.set(turnId, parent);
  }

  /** What the session of a running turn belongs to. */
  parentOf(turnId: string | undefined): SessionId | undefined {
    return this.#parents.get(turnId ?? '');
  }

  end(turnId: string): void {
    const row = this.#rows.get(turnId);
    if (row !== undefined) this.#sql.end.run(row, turnId);
  }

  /** Forgets the row of a turn whose end is committed, or whose beginning is not. */
  forget(turnId: string): void {
    this.#rows.delete(turnId);
    this.#parents.delete(turnId);
  }

  /**
   * Marks the turns of dead processes as interrupted and returns each once. A turn whose input
   * cannot be read is returned as the error. The rows expire like sessions.
   */
  recover(): readonly (InterruptedTurn | BadRow)[] {
    const rows = this.#sql.interrupt.all(this.#clock.stamp(), this.#opening) as unknown as readonly (SessionId &
      InterruptedRow)[];
    return rows.map(({ project, agent, key, turn_id, rowid, input }) =>
      tryRow(() => {
        const messages = decodeMessageList(input, (problem) => new BadRow(`the input of turn row ${rowid}`, problem));
        return { id: { project, agent, key }, turnId: turn_id, input: messages };
      }),
    );
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
  end: 'DELETE FROM turn WHERE rowid = ? AND turn_id = ?', // the row is another turn's if the session was deleted meanwhile
  interrupt: `UPDATE turn SET interrupted_at = ? WHERE interrupted_at IS NULL AND opening < ?
    RETURNING rowid, project, agent, key, turn_id, input`,
  deleteAll: 'DELETE FROM turn WHERE project = ? AND agent = ? AND key = ?',
} as const;
