import { conversationId, type InterruptedTurn, type SessionId } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessageList, tryRow } from '@plugboard/store-kit';
import { Database } from '../database/database.js';
import { leaseEnded } from '../errors/store-error.js';
import { fromColumn, idColumns, idOf, toColumn } from './columns.js';
import type { ProjectUsage, Used } from './project-usage.js';

/** Bytes that a turn needs at least. How many it will really need is unknown when it begins. */
const SMALLEST_TURN = 1;

/** The table of running and interrupted turns. */
export class TurnTable {
  readonly #database: Database;
  readonly #usage: ProjectUsage;

  constructor(database: Database, usage: ProjectUsage) {
    this.#database = database;
    this.#usage = usage;
  }

  /**
   * @param input a list of messages as JSON. @param replica the server's row
   * @param parent what the session belongs to
   * @throws ProjectQuotaExceeded, StoreError `lease_ended`
   */
  async begin(id: SessionId, turnId: string, input: string, replica: number, parent: SessionId | undefined): Promise<void> {
    const { maxSessions, maxBytes } = this.#usage.quotas;
    const owner = parent ? conversationId(parent) : null;
    const values = [...idColumns(id), toColumn(turnId), replica, input, maxSessions, maxBytes, SMALLEST_TURN, owner];
    const [found] = await this.#database.run<Used & { readonly begun: boolean }>(SQL.begin, values);
    if (found?.begun) return;
    this.#usage.assertRoom(found, SMALLEST_TURN);
    throw leaseEnded();
  }

  async end(turnId: string): Promise<void> {
    await this.#database.run('DELETE FROM plugboard.turn WHERE turn_id = $1', [toColumn(turnId)]);
  }

  /**
   * Marks the turns of dead servers as interrupted and returns each once. A turn whose input cannot
   * be read is returned as the error. The rows expire like sessions.
   */
  async recover(): Promise<readonly (InterruptedTurn | BadRow)[]> {
    const rows = await this.#database.transaction((query) => query<InterruptedRow>(SQL.recover));
    return rows.map((row) =>
      tryRow(() => ({
        id: idOf(row),
        turnId: fromColumn(row.turn_id),
        input: decodeMessageList(row.input, (problem) => new BadRow(`the input of turn row ${row.seq}`, problem)),
      })),
    );
  }
}

interface InterruptedRow extends SessionId {
  readonly seq: number;
  readonly turn_id: string;
  readonly input: string;
}

const SQL = {
  begin: `WITH used AS (
      SELECT coalesce(sum(sessions), 0)::bigint AS sessions, coalesce(sum(bytes), 0)::bigint AS bytes,
        NOT EXISTS (SELECT FROM plugboard.session WHERE project = $1 AND agent = $2 AND key = $3) AS is_new
      FROM plugboard.usage WHERE project = $1),
    added AS (
      INSERT INTO plugboard.turn (project, agent, key, turn_id, replica, runs, input, parent)
      SELECT $1, $2, $3, $4, replica.id,
        NOT EXISTS (SELECT FROM plugboard.turn WHERE project = $1 AND agent = $2 AND key = $3 AND runs), $6, $10
      FROM plugboard.replica, used
      WHERE replica.id = $5 AND replica.expires_at > clock_timestamp()
        AND used.bytes + $9::bigint <= $8::bigint AND NOT (is_new AND used.sessions >= $7::bigint)
      ON CONFLICT (turn_id) DO UPDATE SET input = excluded.input RETURNING seq)
    SELECT sessions, bytes, is_new AS "isNew", EXISTS (SELECT FROM added) AS begun FROM used`,
  recover: `UPDATE plugboard.turn SET runs = false, end_why = 'interrupted', ended_at = ${Database.NOW}
    WHERE end_why IS NULL AND NOT EXISTS
      (SELECT FROM plugboard.replica WHERE id = turn.replica AND expires_at > clock_timestamp())
    RETURNING seq, project, agent, key, turn_id, input`,
} as const;
