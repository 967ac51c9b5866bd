import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '@plugboard/kernel';
import { ExpiryClock } from '@plugboard/kernel/contracts';
import type { RowCaps } from '@plugboard/store-kit';
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

/** Sessions may be kept this share of `ttl` longer: not every turn moves its index entry. */
const USE_PRECISION = 0.01;

/** When a session was last used, as an earlier process wrote it. */
function lastUse(database: DatabaseSync): number | undefined {
  const last = database.prepare('SELECT max(used_at) AS last FROM session').get()?.last ?? null;
  return last === null ? undefined : Number(last);
}

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
   * @param caps of rows, by default those of the contracts.
   */
  constructor(opened: OpenedDatabase, clock: Clock, ttl: number, { maxRecords, maxStateKeys }: RowCaps = {}) {
    const expiry = new ExpiryClock(clock, lastUse(opened.database));
    this.sessions = new SessionTable(opened.database, { clock, expiry }, ttl * USE_PRECISION);
    this.sessionInfo = new SessionInfoTable(opened.database);
    this.forks = new ForkTable(opened, this.sessions);
    this.turns = new TurnTable(opened, expiry);
    this.pendingCalls = new PendingToolCallTable(opened.database, expiry);
    this.documents = new DocumentTable(opened.database);
    this.approvals = new ApprovalTable(opened.database);
    this.idempotency = new IdempotencyTable(opened.database, expiry, maxRecords);
    this.state = new StateTable(opened.database, expiry, maxStateKeys);
    this.#expired = new ExpiredRows(opened, expiry);
    this.#ttl = ttl;
  }

  /** Deletes some expired rows. */
  sweep(): Swept {
    const records = this.idempotency.sweep();
    const hasMoreState = this.state.sweep();
    const { hasMore, freed } = this.#expired.sweep(this.#ttl, this.#ttl * USE_PRECISION);
    return { hasMore: hasMore || records.hasMore || hasMoreState, freed: [...freed, ...records.freed] };
  }
}
