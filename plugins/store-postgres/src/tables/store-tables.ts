import type { ProjectQuotas, RowCaps } from '@plugboard/store-kit';
import type { Database } from '../database/database.js';
import { ApprovalTable } from './approval-table.js';
import { DocumentTable } from './document-table.js';
import { ExpiredRows } from './expired-rows.js';
import { ForkTable } from './fork-table.js';
import { HistoryTable } from './history-table.js';
import { HoldTable } from './hold-table.js';
import { IdempotencyTable } from './idempotency-table.js';
import { LineTable } from './line-table.js';
import { LiveTable } from './live-table.js';
import { PendingCallTable } from './pending-call-table.js';
import { ProjectUsage } from './project-usage.js';
import { RateTable } from './rate-table.js';
import { SessionInfoTable } from './session-info-table.js';
import { SessionTable } from './session-table.js';
import { StateTable } from './state-table.js';
import { TurnTable } from './turn-table.js';

/** All tables of the schema. */
export class StoreTables {
  readonly usage: ProjectUsage;
  readonly sessions: SessionTable;
  readonly history: HistoryTable;
  readonly sessionInfo: SessionInfoTable;
  readonly forks: ForkTable;
  readonly turns: TurnTable;
  readonly line: LineTable;
  readonly live: LiveTable;
  readonly rates: RateTable;
  readonly holds: HoldTable;
  readonly pendingCalls: PendingCallTable;
  readonly documents: DocumentTable;
  readonly approvals: ApprovalTable;
  readonly idempotency: IdempotencyTable;
  readonly state: StateTable;
  readonly #expired: ExpiredRows;

  /**
   * @param ttl milliseconds from a session's last turn to its expiry.
   * @param caps of rows, by default those of the contracts.
   */
  constructor(database: Database, quotas: ProjectQuotas, ttl: number, { maxRecords, maxStateKeys }: RowCaps = {}) {
    this.usage = new ProjectUsage(database, quotas);
    this.sessions = new SessionTable(database);
    this.history = new HistoryTable(database);
    this.sessionInfo = new SessionInfoTable(database);
    this.forks = new ForkTable(database, this.usage);
    this.turns = new TurnTable(database, this.usage);
    this.line = new LineTable(database);
    this.live = new LiveTable(database);
    this.rates = new RateTable(database);
    this.holds = new HoldTable(database);
    this.pendingCalls = new PendingCallTable(database);
    this.documents = new DocumentTable(database);
    this.approvals = new ApprovalTable(database);
    this.idempotency = new IdempotencyTable(database, maxRecords);
    this.state = new StateTable(database, maxStateKeys);
    this.#expired = new ExpiredRows(database, ttl);
  }

  /** Deletes some expired rows. @returns whether there may be more. */
  sweep(): Promise<boolean> {
    this.idempotency.recount();
    this.state.recount();
    return this.#expired.sweep();
  }
}
