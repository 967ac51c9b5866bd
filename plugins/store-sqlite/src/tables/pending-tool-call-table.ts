import type { DatabaseSync } from 'node:sqlite';
import type { Message } from '@plugboard/kernel';
import type { ExpiryClock, PendingToolCallsOwner } from '@plugboard/kernel/contracts';
import { BadRow, decodeMessageList, PENDING_CALL_TTL } from '@plugboard/store-kit';
import { prepareAll, type Statements } from './statements.js';

/** The tables of turns that wait for the results of the caller's tools. */
export class PendingToolCallTable {
  readonly #clock: ExpiryClock;
  readonly #sql: Statements<keyof typeof SQL>;

  constructor(database: DatabaseSync, clock: ExpiryClock) {
    this.#clock = clock;
    this.#sql = prepareAll(database, SQL);
  }

  /** @param messages a list of messages as JSON. */
  save({ project, agent }: PendingToolCallsOwner, keys: readonly string[], messages: string): void {
    const { lastInsertRowid } = this.#sql.save.run(messages, this.#clock.stamp() + PENDING_CALL_TTL);
    for (const key of keys) this.#sql.saveKey.run(project, agent, key, lastInsertRowid);
  }

  /** The bytes of the messages of each key that has some. Reads none of them. */
  find({ project, agent }: PendingToolCallsOwner, keys: readonly string[]): ReadonlyMap<string, number> {
    const rows = this.#sql.find.all(JSON.stringify(keys), project, agent, this.#clock.now());
    return new Map(rows.map(({ key, bytes }) => [String(key), Number(bytes)]));
  }

  load({ project, agent }: PendingToolCallsOwner, key: string): readonly Message[] | undefined {
    const row = this.#sql.load.get(project, agent, key, this.#clock.now());
    return row && decodeMessageList(row.messages, (problem) => new BadRow(`pending tool call ${row.id}`, problem));
  }
}

const SQL = {
  save: 'INSERT INTO pending_tool_call (messages, expires_at) VALUES (?, ?)',
  saveKey: 'INSERT OR REPLACE INTO pending_tool_call_key (project, agent, key, call) VALUES (?, ?, ?, ?)',
  find: `SELECT k.key AS key, octet_length(messages) AS bytes FROM json_each(?) AS wanted
    JOIN pending_tool_call_key AS k ON k.key = wanted.value JOIN pending_tool_call AS c ON c.id = k.call
    WHERE k.project = ? AND k.agent = ? AND c.expires_at > ?`,
  load: `SELECT id, messages FROM pending_tool_call_key JOIN pending_tool_call ON id = call
    WHERE project = ? AND agent = ? AND key = ? AND expires_at > ?`,
} as const;
