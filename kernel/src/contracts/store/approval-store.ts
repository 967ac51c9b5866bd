import type { ApprovalChange, SessionId } from './conversation-store.js';

/**
 * Requests for a person's approval, and calls of an interrupted turn that go on with the next one.
 * The runtime writes and reads their texts; a store knows only which of them wait, whose they are,
 * and until when.
 *
 * 1. `commit` of a session stores them together with their turn (`TurnCommit.approvals`), or not at
 *    all.
 * 2. `replace` changes one, if nobody else has changed it since it was read. So of two decisions at
 *    once, one takes effect.
 * 3. They stay as long as their session, and are deleted with it; `fork` does not copy them.
 *
 * @experimental
 */
export interface ApprovalStore {
  /**
   * Those of these ids that exist, in the order of the ids.
   *
   * @param reserve called with the size of each text before it is read. What it throws goes on.
   */
  get(project: string, ids: readonly string[], reserve?: (bytes: number) => void): Promise<readonly StoredApproval[]>;
  /** One without its text, which may be large and is not read. */
  find(project: string, id: string): Promise<Omit<StoredApproval, 'text'> | undefined>;
  /**
   * Lists those of a project that wait, in the order in which they were stored, without their texts
   * (S-69). Reading page after page takes time with the number of them, and no longer.
   */
  waiting(project: string, page: ApprovalPage): Promise<readonly Omit<StoredApproval, 'text'>[]>;
  /**
   * Replaces the text of an approval, and does nothing if it is no longer as it was read.
   * @param read what `get` returned.
   * @returns whether it was replaced.
   */
  replace(read: StoredApproval, change: Pick<ApprovalChange, 'waits' | 'text'>): Promise<boolean>;
}

/** A request for a person's approval, as a store keeps it. @experimental */
export interface StoredApproval extends ApprovalChange {
  readonly session: SessionId;
}

/** Which waiting approvals of a project to list. @experimental */
export interface ApprovalPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Id of the last approval of the previous page. If it does not exist, the page is empty. */
  readonly after?: string | undefined;
  /** Only those of these agents. */
  readonly agents?: readonly string[] | undefined;
  /** Only those that this caller asks for. */
  readonly caller?: string | undefined;
  /** Only those that expire later, in milliseconds since the epoch. */
  readonly expiresAfter?: number | undefined;
  /** Called with the size of each `listed` before the store reads it. Its errors are thrown on. */
  reserve?(bytes: number): void;
}
