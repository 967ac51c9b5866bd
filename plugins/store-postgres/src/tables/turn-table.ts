import { conversationId, type InterruptedTurn, LeaseEnded, type SessionId } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessageList, SMALLEST_TURN, tryRow } from '@plugboard/store-kit';
import { Database } from '../database/database.js';
import { fromColumn, idColumns, idOf, toColumn } from './columns.js';
import type { ProjectUsage, Used } from './project-usage.js';

/** Whether the server of a row of `turn` is alive. */
export const ALIVE = `EXISTS (
    SELECT FROM plugboard.replica WHERE replica.id = turn.replica AND expires_at > clock_timestamp())`;

/** The table of turns, as those see it that begin, or were interrupted. */
interface BegunTurn {
  readonly id: SessionId;
  readonly turnId: string;
  /** A list of messages as JSON. */
  readonly input: string;
  /** The server's row. */
  readonly replica: number;
  /** Whether the turn has a row already. */
  readonly isInLine: boolean;
  /** What the session belongs to. */
  readonly parent: SessionId | undefined;
}

export class TurnTable {
  readonly #database: Database;
  readonly #usage: ProjectUsage;

  constructor(database: Database, usage: ProjectUsage) {
    this.#database = database;
    this.#usage = usage;
  }

  /** @throws ProjectQuotaExceeded, LeaseEnded */
  async begin({ id, turnId, input, replica, isInLine, parent }: BegunTurn): Promise<void> {
    const { maxSessions, maxBytes } = this.#usage.quotas;
    const owner = parent ? conversationId(parent) : null;
    const values = [...idColumns(id), toColumn(turnId), replica, input, maxSessions, maxBytes, SMALLEST_TURN, owner];
    const sql = isInLine ? SQL.beginInLine : SQL.begin;
    const [found] = await this.#database.run<Used & { readonly begun: boolean }>(sql, values);
    if (found?.begun) return;
    this.#usage.assertRoom(found, SMALLEST_TURN);
    throw new LeaseEnded('expired');
  }

  /**
   * Marks the turns of dead servers as this one's, and returns each that began: once, unless this
   * server dies before the turn ends. A turn whose input cannot be read is returned as the error.
   * The rows expire like sessions.
   */
  async recover(replica: number): Promise<readonly (InterruptedTurn | BadRow)[]> {
    const rows = await this.#database.transaction((query) => query<InterruptedRow>(SQL.recover, [replica]));
    return rows.filter(({ input }) => input !== null).map(interruptedTurn);
  }
}

/** A turn of a dead server. */
export interface InterruptedRow extends SessionId {
  readonly seq: number;
  readonly turn_id: string;
  /** Null: it had not begun. */
  readonly input: string | null;
}

export function interruptedTurn(row: InterruptedRow): InterruptedTurn | BadRow {
  const fail = (problem: string) => new BadRow(`the input of turn row ${row.seq}`, problem);
  return tryRow(() => ({ id: idOf(row), turnId: fromColumn(row.turn_id), input: decodeMessageList(row.input ?? '', fail) }));
}

/** What the project stores, and whether the turn may begin by that. */
const USED = `used AS (
    SELECT coalesce(sum(sessions), 0)::bigint AS sessions, coalesce(sum(bytes), 0)::bigint AS bytes,
      NOT EXISTS (SELECT FROM plugboard.session WHERE project = $1 AND agent = $2 AND key = $3) AS is_new
    FROM plugboard.usage WHERE project = $1),
  allowed AS (
    SELECT replica.id FROM plugboard.replica, used
    WHERE replica.id = $5 AND replica.expires_at > clock_timestamp()
      AND used.bytes + $9::bigint <= $8::bigint AND NOT (is_new AND used.sessions >= $7::bigint))`;
const BEGUN = 'SELECT sessions, bytes, is_new AS "isNew", EXISTS (SELECT FROM begun) AS begun FROM used';

const SQL = {
  begin: `WITH ${USED},
    begun AS (
      INSERT INTO plugboard.turn (project, agent, key, turn_id, replica, runs, input, parent)
      SELECT $1, $2, $3, $4, id,
        NOT EXISTS (SELECT FROM plugboard.turn WHERE project = $1 AND agent = $2 AND key = $3 AND runs), $6, $10 FROM allowed
      ON CONFLICT (turn_id) DO UPDATE SET input = excluded.input RETURNING seq)
    ${BEGUN}`,
  beginInLine: `WITH ${USED},
    begun AS (
      UPDATE plugboard.turn SET input = $6, parent = $10 FROM allowed
      WHERE turn_id = $4 AND replica = allowed.id AND runs AND ended_at IS NULL RETURNING seq)
    ${BEGUN}`,
  recover: `UPDATE plugboard.turn SET runs = false, ended_at = ${Database.NOW}, replica = $1
    WHERE (ended_at IS NULL OR input IS NOT NULL) AND NOT ${ALIVE}
    RETURNING seq, project, agent, key, turn_id, input`,
} as const;
