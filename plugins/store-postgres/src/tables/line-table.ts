import { conversationId, type SessionId, type SharedStore } from '@plugboard/kernel/contracts';
import { Database } from '../database/database.js';
import { BY_ID, fromColumn, idColumns, idOf, toColumn } from './columns.js';
import { CURRENT_VERSION } from './session-table.js';
import { ALIVE, type InterruptedRow } from './turn-table.js';

export type TurnArrival = Parameters<SharedStore['acquire']>[1];
export type EndReason = Parameters<SharedStore['endTurns']>[1];

/** A turn that is asked to end. */
export interface EndingTurn {
  readonly seq: number;
  readonly turnId: string;
  readonly replica: number;
  readonly why: EndReason;
}

/**
 * The lines of sessions: rows of the table of turns, in the order of `seq`. The row that `runs` has
 * the lease of its session; an index allows one. Rows of dead servers do not count. One with an
 * end (`ended_at`) was a dead server's: the one in `replica` got it as interrupted.
 */
export class LineTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Puts a turn first, if no turn is in line: one round trip. When repeated, it finds itself.
   * @returns the version of the session; undefined: the turn was not put in line
   */
  async arriveFirst(id: SessionId, turn: TurnArrival, replica: number): Promise<number | undefined> {
    const [row] = await this.#database.run<{ readonly version: number | null }>(SQL.arriveFirst, arrival(id, turn, replica));
    return row && (row.version ?? 0);
  }

  /** Puts a turn last, unless too many are in line, or an equal one. One at a time per session. */
  async arriveLast(id: SessionId, turn: TurnArrival, replica: number): Promise<Arrived> {
    const conversation = conversationId(id);
    const values = [...arrival(id, turn, replica), Math.min(turn.maxAhead, Number.MAX_SAFE_INTEGER)];
    const [found] = await this.#database.transaction(
      async (query) => {
        await query(SQL.lock, [conversation]);
        return query<ArrivedRow>(SQL.arriveLast, values);
      },
      async (query) => (await query(SQL.exists, [toColumn(turn.turnId)])).length > 0,
    );
    const same = found?.same == null ? undefined : fromColumn(found.same);
    return { isInLine: found?.added ?? false, isAlive: found?.alive ?? false, same };
  }

  /** Gives a turn the lease if nothing earlier is left. Marks what dead servers left before it. */
  async take(id: SessionId, turnId: string, replica: number): Promise<Taken> {
    const values = [...idColumns(id), toColumn(turnId), replica];
    const rows = await this.#database.run<TakenRow>(SQL.take, values);
    const [row] = rows;
    const interrupted = rows.find((one) => one.seq !== null);
    return { waits: row?.waits ?? false, isTaken: row?.taken ?? false, interrupted };
  }

  /** Removes a turn. @returns whether others wait for that */
  async leave(turnId: string): Promise<boolean> {
    const [row] = await this.#database.run<{ readonly awaited: boolean }>(SQL.leave, [toColumn(turnId)]);
    return row?.awaited ?? false;
  }

  /** Asks the turns of a session to end, or one of them. The first reason counts. */
  async ask(id: SessionId, why: EndReason, turnId?: string): Promise<readonly EndingTurn[]> {
    const values = [...idColumns(id), why, turnId === undefined ? null : toColumn(turnId)];
    return (await this.#database.run<EndingRow>(SQL.ask, values)).map(endingTurn);
  }

  /** The turns of a server that are asked to end. */
  async asked(replica: number): Promise<readonly EndingTurn[]> {
    return (await this.#database.run<EndingRow>(SQL.asked, [replica])).map(endingTurn);
  }

  /** Whether one of these rows is still in line. */
  async areLeft(rows: readonly EndingTurn[]): Promise<boolean> {
    return (await this.#database.run(SQL.left, [rows.map(({ seq }) => seq)])).length > 0;
  }

  async sessionOf(project: string, turnId: string): Promise<SessionId | undefined> {
    const [row] = await this.#database.run<SessionId>(SQL.sessionOf, [toColumn(project), toColumn(turnId)]);
    return row && idOf(row);
  }
}

/** What came of `arriveLast`. */
interface Arrived {
  readonly isInLine: boolean;
  /** Whether this server's lease counts. */
  readonly isAlive: boolean;
  /** The equal turn. */
  readonly same: string | undefined;
}

/** What came of `take`. */
interface Taken {
  /** Whether the turn is still in line. */
  readonly waits: boolean;
  readonly isTaken: boolean;
  readonly interrupted: InterruptedRow | undefined;
}

interface ArrivedRow {
  readonly added: boolean;
  readonly alive: boolean;
  readonly same: string | null;
}

type TakenRow = InterruptedRow & { readonly waits: boolean; readonly taken: boolean };

interface EndingRow {
  readonly seq: number;
  readonly turn_id: string;
  readonly replica: number;
  readonly end_why: EndReason;
}

function endingTurn({ seq, turn_id: turnId, replica, end_why: why }: EndingRow): EndingTurn {
  return { seq, turnId: fromColumn(turnId), replica, why };
}

/** The columns of an arrival. */
function arrival(id: SessionId, turn: TurnArrival, replica: number): unknown[] {
  const { turnId, fingerprint, user, title } = turn;
  const texts = [fingerprint, user, title].map((text) => (text === undefined ? null : toColumn(text)));
  return [...idColumns(id), toColumn(turnId), replica, ...texts, conversationId(id)];
}

/** Inserts `$1` to `$9`, of a living server, if the condition holds. */
const INSERT = (runs: boolean, condition: string) =>
  `INSERT INTO plugboard.turn (project, agent, key, turn_id, replica, runs, fingerprint, end_user, title, conversation, arrived_at)
    SELECT $1, $2, $3, $4, id, ${runs}, $6, $7, $8, $9, ${Database.NOW} FROM plugboard.replica
    WHERE id = $5 AND expires_at > clock_timestamp() AND ${condition} ON CONFLICT DO NOTHING RETURNING seq`;

const SQL = {
  arriveFirst: `WITH added AS (
      ${INSERT(true, `NOT EXISTS (SELECT FROM plugboard.turn WHERE ${BY_ID} AND ended_at IS NULL)`)})
    SELECT (${CURRENT_VERSION}) AS version FROM added`,
  lock: `SELECT pg_advisory_xact_lock(hashtext('plugboard line'), hashtext($1))`,
  arriveLast: `WITH ahead AS (
      SELECT turn_id, fingerprint FROM plugboard.turn WHERE ${BY_ID} AND ended_at IS NULL AND turn_id <> $4 AND ${ALIVE}),
    added AS (
      ${INSERT(false, '(SELECT count(*) FROM ahead) <= $10::bigint AND NOT EXISTS (SELECT FROM ahead WHERE fingerprint = $6)')})
    SELECT EXISTS (SELECT FROM added) OR EXISTS (SELECT FROM plugboard.turn WHERE turn_id = $4) AS added,
      (SELECT turn_id FROM ahead WHERE fingerprint = $6 LIMIT 1) AS same,
      EXISTS (SELECT FROM plugboard.replica WHERE id = $5 AND expires_at > clock_timestamp()) AS alive`,
  exists: 'SELECT FROM plugboard.turn WHERE turn_id = $1',
  // The index sees the end of the dead row, because the last condition reads it first.
  take: `WITH own AS (
      SELECT seq, runs FROM plugboard.turn WHERE turn_id = $4 AND replica = $5 AND ended_at IS NULL AND ${ALIVE}),
    first AS (
      SELECT seq FROM own WHERE runs OR NOT EXISTS (
        SELECT FROM plugboard.turn WHERE ${BY_ID} AND ended_at IS NULL AND turn.seq <> own.seq
          AND (turn.runs OR turn.seq < own.seq) AND ${ALIVE})),
    dead AS (
      UPDATE plugboard.turn SET runs = false, ended_at = ${Database.NOW}, replica = $5 FROM first
      WHERE ${BY_ID} AND ended_at IS NULL AND turn.seq <> first.seq AND (runs OR input IS NULL) AND NOT ${ALIVE}
      RETURNING turn.seq, turn_id, project, agent, key, input),
    taken AS (
      UPDATE plugboard.turn SET runs = true FROM first
      WHERE turn.seq = first.seq AND (SELECT count(*) FROM dead) >= 0 RETURNING turn.seq)
    SELECT EXISTS (SELECT FROM own) AS waits, EXISTS (SELECT FROM taken) AS taken, dead.*
    FROM (SELECT 1) AS one LEFT JOIN dead ON input IS NOT NULL`,
  leave: `WITH gone AS (DELETE FROM plugboard.turn WHERE turn_id = $1 RETURNING seq, project, agent, key, end_why)
    SELECT end_why IS NOT NULL OR EXISTS (
      SELECT FROM plugboard.turn WHERE turn.project = gone.project AND turn.agent = gone.agent AND turn.key = gone.key
        AND turn.seq <> gone.seq AND ended_at IS NULL) AS awaited FROM gone`,
  ask: `UPDATE plugboard.turn SET end_why = coalesce(end_why, $4)
    WHERE ${BY_ID} AND ended_at IS NULL AND ($5::text IS NULL OR turn_id = $5) AND ${ALIVE}
    RETURNING seq, turn_id, replica, end_why`,
  asked: `SELECT seq, turn_id, replica, end_why FROM plugboard.turn
    WHERE replica = $1 AND end_why IS NOT NULL AND ended_at IS NULL`,
  left: `SELECT FROM plugboard.turn WHERE seq = ANY ($1::bigint[]) AND ended_at IS NULL AND ${ALIVE} LIMIT 1`,
  sessionOf: `SELECT project, agent, key FROM plugboard.turn
    WHERE turn_id = $2 AND project = $1 AND ended_at IS NULL AND ${ALIVE}`,
} as const;
