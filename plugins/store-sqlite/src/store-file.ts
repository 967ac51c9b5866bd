import type { Clock } from '@plugboard/kernel';
import { BegunFile } from './begun-file.js';
import { DocumentTable } from './document-table.js';
import { ExpiredFile } from './expired-file.js';
import { FactFile } from './fact-file.js';
import { IdempotencyFile } from './idempotency-file.js';
import type { OpenedFile } from './open-file.js';
import { PendingToolCallTable } from './pending-tool-call-table.js';
import { SessionFile } from './session-file.js';

/** All that stands in the file, each kind with the statements that read and write it. */
export class StoreFile {
  readonly sessions: SessionFile;
  readonly info: FactFile;
  readonly begun: BegunFile;
  readonly pendingCalls: PendingToolCallTable;
  readonly answers: IdempotencyFile;
  readonly documents: DocumentTable;
  readonly #expired: ExpiredFile;

  constructor(path: string, opened: OpenedFile, clock: Clock) {
    this.sessions = new SessionFile(path, opened.database, clock);
    this.info = new FactFile(path, opened.database);
    this.begun = new BegunFile(path, opened, clock);
    this.pendingCalls = new PendingToolCallTable(path, opened.database, clock);
    this.answers = new IdempotencyFile(opened.database, clock);
    this.documents = new DocumentTable(opened.database);
    this.#expired = new ExpiredFile(opened.database, clock);
  }

  /** One small step of deleting what is older than `ttl` milliseconds, or not to be kept for longer. @returns whether there may be more to delete. */
  sweep(ttl: number): boolean {
    const hasMoreAnswers = this.answers.sweep();
    return this.#expired.sweep(ttl) || hasMoreAnswers;
  }
}
