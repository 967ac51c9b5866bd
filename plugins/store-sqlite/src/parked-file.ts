import type { DatabaseSync } from 'node:sqlite';
import type { Clock, Message, ParkOwner } from '@plugboard/kernel';
import { badRow } from './errors.js';
import { prepareAll, type Statements, stamp } from './statements.js';
import { decodedList } from './stored-message.js';

const HOUR = 60 * 60_000;

/** What stateless turns left for their callers' next requests, as it stands in the file. */
export class ParkedFile {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(path: string, database: DatabaseSync, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /** @param messages a list of messages as JSON. */
  park({ project, agent }: ParkOwner, keys: readonly string[], messages: string): void {
    const { lastInsertRowid } = this.#sql.park.run(messages, stamp(this.#clock) + HOUR);
    for (const key of keys) this.#sql.parkKey.run(project, agent, key, lastInsertRowid);
  }

  parked({ project, agent }: ParkOwner, key: string): readonly Message[] | undefined {
    const row = this.#sql.parked.get(project, agent, key, stamp(this.#clock));
    return row && decodedList(row.messages, (fault) => badRow(this.#path, `parked row ${row.id}`, fault));
  }
}

const SQL = {
  park: 'INSERT INTO parked (messages, expires_at) VALUES (?, ?)',
  parkKey: 'INSERT OR REPLACE INTO parked_key (project, agent, key, parked) VALUES (?, ?, ?, ?)',
  parked: `SELECT id, messages FROM parked_key JOIN parked ON id = parked
    WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?`,
} as const;
