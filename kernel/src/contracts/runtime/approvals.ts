import type { Principal } from '../callers/principal.js';
import type { Account } from './account.js';

/**
 * The tool calls that wait for a person's approval. A principal reaches those of its project and
 * its agents: all with the scope `approve`, otherwise those of turns that it began itself. Any
 * other id is `approval_not_found`.
 *
 * What is read is reserved in the account before (S-71).
 *
 * Transports check scopes. All methods reject with a `TurnError`: `store_failed`, and what they
 * name.
 *
 * @experimental
 */
export interface Approvals {
  /** Lists what waits, in the order of the requests. */
  list(page: ApprovalListPage, principal: Principal, account: Account): Promise<readonly Approval[]>;
  /**
   * Decides about a call. It runs, or is answered, with the next request of its session.
   * @throws TurnError `approval_not_found`; `approval_decided` with the earlier decision;
   *   `approval_expired`.
   */
  decide(id: string, decision: Omit<ApprovalDecision, 'id'>, principal: Principal, account: Account): Promise<Approval>;
}

/** Which waiting approvals to list. @experimental */
export interface ApprovalListPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Id of the last approval of the previous page. */
  readonly after?: string | undefined;
}

/** A tool call that waits for a person's approval, or waited. @experimental */
export interface Approval {
  readonly id: string;
  /** The opaque id of its session. */
  readonly conversation: string;
  /** The key of its session. */
  readonly session: string;
  readonly agent: string;
  /** The entry that offers the tool and the tool's own name, unless the agent hides them. */
  readonly tool: { readonly entry: string; readonly name: string } | undefined;
  /** The arguments as JSON text, unless the agent hides them. They are what will run. */
  readonly arguments: string | undefined;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Milliseconds since the epoch. Undecided until then, it counts as denied. */
  readonly expiresAt: number;
}

/** A person's decision about a tool call that waits. @experimental */
export interface ApprovalDecision {
  readonly id: string;
  readonly approve: boolean;
  /** For the model, if the call is denied. */
  readonly reason?: string | undefined;
}
