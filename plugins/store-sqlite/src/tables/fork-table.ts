import { SessionExists, type SessionId } from '@plugboard/kernel/contracts';
import type { OpenedDatabase } from '../database/open-database.js';
import type { SessionTable } from './session-table.js';
import { columns, prepareAll, type Statements } from './statements.js';

/** Messages that one slice copies: a few milliseconds, in which nothing else runs. */
const SLICE_ROWS = 500;
const SLICE_BYTES = 512 * 1024;

/** A fork that is being copied. */
export interface Fork {
  readonly source: SourceRow;
  readonly sourceId: SessionId;
  readonly id: SessionId;
  /** The row id of the copy, which is not in the table of sessions yet. */
  readonly row: number;
  /** The version before the copy's first turn. */
  readonly base: number;
  readonly turns: number;
  /** The last message that was copied. */
  readonly last: MessagePosition;
  /** Size of the messages copied so far. */
  readonly bytes: number;
  /** Whether all messages are copied. */
  readonly isComplete: boolean;
}

/** The session that is copied, as it was when the fork began. */
interface SourceRow {
  readonly id: number;
  readonly base: number;
  readonly version: number;
  readonly bytes: number;
  readonly user: string | null;
  readonly title: string | null;
  readonly metadata: string;
}

interface MessagePosition {
  readonly turn: number;
  readonly place: number;
}

/**
 * Forks of sessions, copied in slices so that a long session does not block the process (S-39).
 *
 * 1. `begin` reserves a row id, under which nothing can be found.
 * 2. `copy` copies the next messages to it, until the fork is complete.
 * 3. `finish` makes the copy a session.
 *
 * Until then the row id counts as leftover of this opening of the file. If the fork is cancelled,
 * or the process dies, its messages are deleted like those of a deleted session.
 */
export class ForkTable {
  readonly #sessions: SessionTable;
  readonly #opening: number;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor({ database, opening }: OpenedDatabase, sessions: SessionTable) {
    this.#sessions = sessions;
    this.#opening = opening;
    this.#sql = prepareAll(database, SQL);
  }

  /** Returns undefined if there is no such session. @throws SessionExists */
  begin(sourceId: SessionId, key: string, turns: number): Fork | undefined {
    const id = { ...sourceId, key };
    if (this.#sessions.exists(id)) throw new SessionExists();
    const source = this.#sql.source.get(...columns(sourceId)) as SourceRow | undefined;
    if (!source) return undefined;
    const row = Number(this.#sql.reserve.get()?.id);
    this.#sql.addLeftover.run(row, this.#opening);
    const count = Math.min(turns, source.version - source.base);
    const last = { turn: source.base, place: Number.MAX_SAFE_INTEGER };
    const base = this.#sessions.initialVersion(id);
    return { source, sourceId, id, row, base, turns: count, last, bytes: 0, isComplete: count === 0 };
  }

  /** Copies the next slice. */
  copy(fork: Fork): Fork {
    const { source, row, base, last } = fork;
    const upTo = source.base + fork.turns;
    let [next, bytes, rows] = [last, 0, 0];
    for (const { turn, place, size } of this.#sql.next.iterate(source.id, last.turn, last.place, upTo, SLICE_ROWS)) {
      next = { turn: Number(turn), place: Number(place) };
      bytes += Number(size);
      rows++;
      if (bytes >= SLICE_BYTES) break;
    }
    const isComplete = bytes < SLICE_BYTES && rows < SLICE_ROWS;
    this.#sql.copy.run(row, base - source.base, source.id, last.turn, last.place, next.turn, next.place);
    return { ...fork, last: next, bytes: fork.bytes + bytes, isComplete };
  }

  /**
   * Returns false if the source was deleted meanwhile: its messages may be gone, and the fork must
   * be cancelled.
   * @throws SessionExists if the key was used meanwhile.
   */
  finish({ source, sourceId, id, row, base, turns, bytes }: Fork): boolean {
    if (this.#sessions.exists(id) || this.#sessions.initialVersion(id) !== base) throw new SessionExists();
    if (this.#sql.source.get(...columns(sourceId))?.id !== source.id) return false;
    const { user, title, metadata } = source;
    const size = bytes + Buffer.byteLength(metadata);
    this.#sessions.insert(id, { base, version: base + turns, user, title, metadata, bytes: size }, row);
    this.#sql.copySummary.run(row, source.id, row);
    this.#sql.deleteLeftover.run(row);
    return true;
  }

  /** Leaves what was copied to the sweeper. */
  cancel({ row }: Fork): void {
    this.#sql.cancel.run(row);
  }
}

const SQL = {
  source: 'SELECT id, base, version, bytes, user, title, metadata FROM session WHERE project = ? AND agent = ? AND key = ?',
  reserve: "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = 'session' RETURNING seq AS id",
  addLeftover: 'INSERT INTO leftover (session, opening) VALUES (?, ?)',
  next: `SELECT turn, place, octet_length(body) AS size FROM message
    WHERE session = ? AND (turn, place) > (?, ?) AND turn <= ? ORDER BY turn, place LIMIT ?`,
  copy: `INSERT INTO message (session, turn, place, body)
    SELECT ?, turn + ?, place, body FROM message WHERE session = ? AND (turn, place) > (?, ?) AND (turn, place) <= (?, ?)`,
  copySummary: `INSERT INTO summary (session, messages, text)
    SELECT ?, messages, text FROM summary WHERE session = ? AND messages <= (SELECT count(*) FROM message WHERE session = ? AND place >= 0)`,
  deleteLeftover: 'DELETE FROM leftover WHERE session = ?',
  cancel: 'UPDATE leftover SET opening = NULL WHERE session = ?',
} as const;
