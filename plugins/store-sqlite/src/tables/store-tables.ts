import type { Clock } from '@plugboard/kernel';
import type { OpenedDatabase } from '../database/open-database.js';
import { DocumentTable } from './document-table.js';
import { ExpiredRows } from './expired-rows.js';
import { IdempotencyTable } from './idempotency-table.js';
import { PendingToolCallTable } from './pending-tool-call-table.js';
import { SessionInfoTable } from './session-info-table.js';
import { SessionTable } from './session-table.js';
import { TurnTable } from './turn-table.js';

/** All tables of the file, with their prepared statements. */
export class StoreTables {
  readonly sessions: SessionTable;
  readonly sessionInfo: SessionInfoTable;
  readonly turns: TurnTable;
  readonly pendingCalls: PendingToolCallTable;
  readonly documents: DocumentTable;
  readonly idempotency: IdempotencyTable;
  readonly #expired: ExpiredRows;

  constructor(path: string, opened: OpenedDatabase, clock: Clock) {
    this.sessions = new SessionTable(path, opened.database, clock);
    this.sessionInfo = new SessionInfoTable(path, opened.database);
    this.turns = new TurnTable(path, opened, clock);
    this.pendingCalls = new PendingToolCallTable(path, opened.database, clock);
    this.documents = new DocumentTable(opened.database);
    this.idempotency = new IdempotencyTable(opened.database, clock);
    this.#expired = new ExpiredRows(opened.database, clock);
  }

  /** Deletes some expired rows. @param ttl milliseconds that sessions are kept. @returns whether there may be more. */
  sweep(ttl: number): boolean {
    const hasMoreRecords = this.idempotency.sweep();
    return this.#expired.sweep(ttl) || hasMoreRecords;
  }
}
