import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import { badRow } from '../errors/store-error.js';
import { decodeMessage } from '../json/message-json.js';
import { prepareAll, type Statements } from './statements.js';

/**
 * The table of messages. A message belongs to a session row and to the version that its turn led
 * to.
 */
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
    return this.#decodeAll(session, this.#sql.load.all(session));
  }

  /** Returns the messages that led to a version, and their size as JSON. */
  turn(session: number, version: number): { readonly messages: readonly Message[]; readonly bytes: number } {
    return this.#decodeAll(session, this.#sql.loadTurn.all(session, version));
  }

  #decodeAll(session: number, rows: readonly Record<string, SQLOutputValue>[]) {
    return {
      messages: rows.map((row) => this.#decode(session, row)),
      bytes: rows.reduce((sum, { body }) => sum + Buffer.byteLength(String(body)), 0),
    };
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
  loadTurn: 'SELECT turn, place, body FROM message WHERE session = ? AND turn = ? ORDER BY place',
} as const;
