import type { Message } from '@plugboard/kernel';
import type { PendingToolCallsOwner } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessageList, PENDING_CALL_TTL } from '@plugboard/store-kit';
import { Database } from '../database/database.js';
import { fromColumn, toColumn } from './columns.js';
import { addUsage, anySlot } from './project-usage.js';

/** The tables of turns that wait for the results of the caller's tools. */
export class PendingCallTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @param messages a list of messages as JSON. */
  async save({ project, agent }: PendingToolCallsOwner, keys: readonly string[], messages: string): Promise<void> {
    const unique = [...new Set(keys.map(toColumn))];
    await this.#database.run(SQL.save, [toColumn(project), toColumn(agent), unique, messages, PENDING_CALL_TTL, anySlot()]);
  }

  /** The bytes of the messages of each key that has some. Reads none of them. */
  async find({ project, agent }: PendingToolCallsOwner, keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const values = [toColumn(project), toColumn(agent), keys.map(toColumn)];
    const rows = await this.#database.run<{ readonly key: string; readonly bytes: number }>(SQL.find, values);
    return new Map(rows.map(({ key, bytes }) => [fromColumn(key), bytes]));
  }

  async load({ project, agent }: PendingToolCallsOwner, key: string): Promise<readonly Message[] | undefined> {
    const values = [toColumn(project), toColumn(agent), toColumn(key)];
    const [row] = await this.#database.run<{ readonly id: number; readonly messages: string }>(SQL.load, values);
    return row && decodeMessageList(row.messages, (problem) => new BadRow(`pending tool call ${row.id}`, problem));
  }
}

const SQL = {
  save: `WITH call AS (
      INSERT INTO plugboard.pending_call (project, messages, expires_at)
      VALUES ($1, $4, ${Database.NOW} + $5::bigint) RETURNING id),
    keys AS (
      INSERT INTO plugboard.pending_call_key (project, agent, key, call)
      SELECT $1, $2, key, id FROM call, unnest($3::text[]) AS key
      ON CONFLICT (project, agent, key) DO UPDATE SET call = excluded.call)
    ${addUsage('SELECT $1, $6::int, 0, octet_length($4) FROM call')}`,
  find: `SELECT key, octet_length(messages)::bigint AS bytes
    FROM plugboard.pending_call_key AS k JOIN plugboard.pending_call AS c ON c.id = k.call
    WHERE k.project = $1 AND agent = $2 AND key = ANY($3::text[]) AND expires_at > ${Database.NOW}`,
  load: `SELECT c.id, messages FROM plugboard.pending_call_key AS k JOIN plugboard.pending_call AS c ON c.id = k.call
    WHERE k.project = $1 AND agent = $2 AND key = $3 AND expires_at > ${Database.NOW}`,
} as const;
