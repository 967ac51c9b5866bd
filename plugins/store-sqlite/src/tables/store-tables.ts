import type { Clock } from '@plugboard/kernel';
import type { OpenedDatabase } from '../database/open-database.js';
import { ApprovalTable } from './approval-table.js';
import { DocumentTable } from './document-table.js';
import { ExpiredRows, type Swept } from './expired-rows.js';
import { ForkTable } from './fork-table.js';
import { IdempotencyTable } from './idempotency-table.js';
import { PendingToolCallTable } from './pending-tool-call-table.js';
import { SessionInfoTable } from './session-info-table.js';
import { SessionTable } from './session-table.js';
import { StateTable } from './state-table.js';
import { TurnTable } from './turn-table.js';

/**
 * Sessions may be kept this share of `ttl` longer, so that not every turn has to move its session
 * in the index of last uses.
 */
const USE_PRECISION = 0.01;

/** All tables of the file, with their prepared statements. */
export class StoreTables {
  readonly sessions: SessionTable;
  readonly sessionInfo: SessionInfoTable;
  readonly forks: ForkTable;
  readonly turns: TurnTable;
  readonly pendingCalls: PendingToolCallTable;
  readonly documents: DocumentTable;
  readonly approvals: ApprovalTable;
  readonly idempotency: IdempotencyTable;
  readonly state: StateTable;
  readonly #expired: ExpiredRows;
  readonly #ttl: number;

  /**
   * @param ttl milliseconds from a session's last turn to its expiry.
   * @param maxRecords maximum number of idempotency records.
   */
  constructor(path: string, opened: OpenedDatabase, clock: Clock, ttl: number, maxRecords?: number) {
    this.sessions = new SessionTable(path, opened.database, clock, ttl * USE_PRECISION);
    this.sessionInfo = new SessionInfoTable(path, opened.database);
    this.forks = new ForkTable(opened, this.sessions);
    this.turns = new TurnTable(path, opened, clock);
    this.pendingCalls = new PendingToolCallTable(path, opened.database, clock);
    this.documents = new DocumentTable(opened.database);
    this.approvals = new ApprovalTable(opened.database);
    this.idempotency = new IdempotencyTable(opened.database, clock, maxRecords);
    this.state = new StateTable(opened.database);
    this.#expired = new ExpiredRows(opened, clock);
    this.#ttl = ttl;
  }

  /** Deletes some expired rows. */
  sweep(): Swept {
    const records = this.idempotency.sweep();
    const { hasMore, deleted, freed } = this.#expired.sweep(this.#ttl, this.#ttl * USE_PRECISION);
    return { hasMore: hasMore || records.hasMore, deleted, freed: [...freed, ...records.freed] };
  }
}
