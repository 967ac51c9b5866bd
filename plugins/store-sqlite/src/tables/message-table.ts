import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import { BadRow, decodeMessage } from '@plugboard/store-kit';
import { prepareAll, type Statements } from './statements.js';

/** The place of the record of a turn. Its messages have places from 0. */
const RECORD = -1;

/** The table of messages and records of turns, by session row and the version they led to. */
export class MessageTable {
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync) {
    this.#sql = prepareAll(database, SQL);
  }

  /** @param bodies the messages of one turn, each as JSON. */
  add(session: number, version: number, bodies: readonly string[], record?: string): void {
    if (record !== undefined) this.#sql.add.run(session, version, RECORD, record);
    for (const [place, body] of bodies.entries()) this.#sql.add.run(session, version, place, body);
  }

  load(session: number): { readonly messages: readonly Message[]; readonly bytes: number } {
    return this.#decodeAll(session, this.#sql.load.all(session));
  }

  /** Returns the messages that led to a version, their size as JSON, and the record. */
  turn(
    session: number,
    version: number,
  ): { readonly messages: readonly Message[]; readonly bytes: number; readonly record: string | undefined } {
    const rows = this.#sql.loadTurn.all(session, version);
    const record = rows[0]?.place === RECORD ? String(rows[0].body) : undefined;
    return { ...this.#decodeAll(session, record === undefined ? rows : rows.slice(1)), record };
  }

  /** The size of the messages that led to a version, and of the record. */
  sizeOf(session: number, version: number): number {
    return Number(this.#sql.size.get(session, version)?.size ?? 0);
  }

  #decodeAll(session: number, rows: readonly Record<string, SQLOutputValue>[]) {
    return {
      messages: rows.map((row) => this.#decode(session, row)),
      bytes: rows.reduce((sum, { body }) => sum + Buffer.byteLength(String(body)), 0),
    };
  }

  #decode(session: number, { turn, place, body }: Record<string, SQLOutputValue>): Message {
    return decodeMessage(body, (problem) => new BadRow(`message ${place} of turn ${turn} of session ${session}`, problem));
  }
}

const SQL = {
  add: 'INSERT INTO message (session, turn, place, body) VALUES (?, ?, ?, ?)',
  load: 'SELECT turn, place, body FROM message WHERE session = ? AND place >= 0 ORDER BY turn, place',
  size: 'SELECT total(octet_length(body)) AS size FROM message WHERE session = ? AND turn = ?',
  loadTurn: 'SELECT turn, place, body FROM message WHERE session = ? AND turn = ? ORDER BY place',
} as const;
