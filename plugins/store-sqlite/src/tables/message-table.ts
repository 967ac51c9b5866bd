import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import type { StoredTurn } from '@plugboard/kernel/contracts';
import { badRow } from '../errors/store-error.js';
import { decodeMessage } from '../json/message-json.js';
import { prepareAll, type Statements } from './statements.js';

/** A range of versions: the turns of a session by their position in its history. */
export interface VersionRange {
  readonly first: number;
  readonly last: number;
}

/** The table of messages. A message belongs to a session row and to the version that its turn led to. */
export class MessageTable {
  readonly #path: string;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, database: DatabaseSync) {
    this.#path = path;
    this.#sql = prepareAll(database, SQL);
  }

  /** @param bodies the messages of one turn, each as JSON. */
  add(session: number, version: number, bodies: readonly string[]): void {
    for (const [place, body] of bodies.entries()) this.#sql.add.run(session, version, place, body);
  }

  load(session: number): { readonly messages: readonly Message[]; readonly bytes: number } {
    const rows = this.#sql.load.all(session);
    return {
      messages: rows.map((row) => this.#decode(session, row)),
      bytes: rows.reduce((sum, { body }) => sum + Buffer.byteLength(String(body)), 0),
    };
  }

  /** Returns the turns of a range in order, numbered from `number`. Turns without messages have no rows. */
  turns(session: number, { first, last }: VersionRange, number: number): readonly StoredTurn[] {
    const turns: { turn: number; messages: Message[] }[] = [];
    for (let version = first; version <= last; version++) turns.push({ turn: number + version - first, messages: [] });
    for (const row of this.#sql.loadRange.iterate(session, first, last))
      turns[Number(row.turn) - first]?.messages.push(this.#decode(session, row));
    return turns;
  }

  /** Copies the messages up to a version. `shift` is added to their versions. */
  copy(from: number, to: number, upTo: number, shift: number): void {
    this.#sql.copy.run(to, shift, from, upTo);
  }

  #decode(session: number, { turn, place, body }: Record<string, SQLOutputValue>): Message {
    return decodeMessage(body, (problem) =>
      badRow(this.#path, `message ${place} of turn ${turn} of session ${session}`, problem),
    );
  }
}

const SQL = {
  add: 'INSERT INTO message (session, turn, place, body) VALUES (?, ?, ?, ?)',
  load: 'SELECT turn, place, body FROM message WHERE session = ? ORDER BY turn, place',
  loadRange: 'SELECT turn, place, body FROM message WHERE session = ? AND turn BETWEEN ? AND ? ORDER BY turn, place',
  copy: `INSERT INTO message (session, turn, place, body)
    SELECT ?, turn + ?, place, body FROM message WHERE session = ? AND turn <= ?`,
} as const;
