import type { Message } from '@plugboard/kernel';
import type { SessionId, StoredSession, StoredTurn, TurnPage } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessage } from '@plugboard/store-kit';
import { Database } from '../database/database.js';
import { BY_ID, fromColumn, idColumns } from './columns.js';

/** Reads the messages of sessions, and the records of their turns. */
export class HistoryTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** One statement, so that messages, version and summary are of the same moment. */
  async load(id: SessionId): Promise<StoredSession> {
    const rows = await this.#database.run<LoadedRow>(SQL.load, idColumns(id));
    const [head, ...messages] = rows;
    if (!head) return { version: 0, turns: 0, messages: [], bytes: 0 };
    const { version, base, covered, body } = head;
    const summary = covered === null || body === null ? undefined : { messages: covered, text: fromColumn(body) };
    return { version, turns: version - base, ...decodeAll(messages), ...(summary && { summary }) };
  }

  /** Reads the sizes of some turns, and then as many of them as the page may have. */
  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    const { limit, order, after, maxBytes = Number.POSITIVE_INFINITY, reserve } = page;
    const from = after ?? (order === 'asc' ? 0 : Number.MAX_SAFE_INTEGER);
    const sizes = await this.#database.run<TurnSize>(SQL.sizes[order], [...idColumns(id), from, limit]);
    const wanted: TurnSize[] = [];
    for (let i = 0, bytes = 0; i < sizes.length && bytes < maxBytes; i++) {
      const size = sizes[i];
      if (!size) break;
      reserve?.(size.bytes + size.record);
      wanted.push(size);
      bytes += size.bytes;
    }
    const [first] = wanted;
    if (!first) return [];
    const turns = wanted.map(({ turn }) => turn);
    const rows = await this.#database.run<MessageRow>(SQL.read, [first.session, Math.min(...turns), Math.max(...turns)]);
    const byTurn = Map.groupBy(rows, ({ turn }) => turn);
    return wanted.flatMap(({ turn, base }) => {
      const found = byTurn.get(turn);
      if (!found) return []; // deleted meanwhile
      const record = found[0]?.place === RECORD ? found[0].body : null;
      const { messages } = decodeAll(found.filter(({ place }) => place !== RECORD));
      return [{ turn: turn - base, messages, ...(record !== null && { record: fromColumn(record) }) }];
    });
  }
}

function decodeAll(rows: readonly MessageRow[]): { readonly messages: readonly Message[]; readonly bytes: number } {
  return {
    messages: rows.map(({ session, turn, place, body }) =>
      decodeMessage(body, (problem) => new BadRow(`message ${place} of turn ${turn} of session ${session}`, problem)),
    ),
    bytes: rows.reduce((sum, { body }) => sum + Buffer.byteLength(body ?? ''), 0),
  };
}

interface MessageRow {
  readonly session: number;
  readonly turn: number;
  readonly place: number;
  readonly body: string | null;
}

/** The first row has the session and the summary, the others a message each. */
interface LoadedRow extends MessageRow {
  readonly version: number;
  readonly base: number;
  readonly covered: number | null;
}

interface TurnSize {
  readonly session: number;
  readonly base: number;
  readonly turn: number;
  /** Of the messages. */
  readonly bytes: number;
  readonly record: number;
}

/** The place of the record of a turn in `read`. */
const RECORD = -1;

const SIZES = (compare: '<' | '>', direction: 'ASC' | 'DESC') => `
  SELECT session.id AS session, base, turn, coalesce(octet_length(body), 0) AS record,
    (SELECT coalesce(sum(octet_length(message.body)), 0)::bigint FROM plugboard.message
      WHERE message.session = record.session AND message.turn = record.turn) AS bytes
  FROM plugboard.session JOIN plugboard.record ON record.session = session.id
  WHERE ${BY_ID} AND turn - base ${compare} $4::bigint ORDER BY turn ${direction} LIMIT $5`;

const SQL = {
  load: `WITH found AS (
      SELECT id, base, version FROM plugboard.session WHERE ${BY_ID}
      UNION ALL SELECT -1, version, version FROM plugboard.tombstone
      WHERE ${BY_ID} AND expires_at > ${Database.NOW} AND NOT EXISTS (SELECT FROM plugboard.session WHERE ${BY_ID}))
    SELECT found.id AS session, 0 AS turn, ${RECORD} AS place, summary.body, version, base, summary.messages AS covered
    FROM found LEFT JOIN plugboard.summary ON session = found.id
    UNION ALL
    SELECT found.id, turn, place, body, 0, 0, 0 FROM plugboard.message JOIN found ON session = found.id
    ORDER BY turn, place`,
  sizes: { asc: SIZES('>', 'ASC'), desc: SIZES('<', 'DESC') },
  read: `SELECT session, turn, ${RECORD} AS place, body FROM plugboard.record WHERE session = $1 AND turn BETWEEN $2 AND $3
    UNION ALL SELECT session, turn, place, body FROM plugboard.message WHERE session = $1 AND turn BETWEEN $2 AND $3
    ORDER BY turn, place`,
} as const;
