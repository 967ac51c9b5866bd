import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { StateStore } from '../../host/plugin/state.js';
import type { ApprovalStore } from './approval-store.js';
import type { ConversationStore } from './conversation-store.js';
import type { DocumentStore } from './document-store.js';
import type { IdempotencyStore } from './idempotency-store.js';
import type { PendingToolCalls } from './pending-tool-calls.js';
import type { SharedStore } from './shared-store.js';

/**
 * Where the server keeps its state. Discipline: exactly one.
 *
 * A store plugin implements six interfaces, each documented in its own file:
 *
 * - the members inherited from `ConversationStore`: sessions and their turns;
 * - `pendingToolCalls`: turns that wait for the results of the caller's own tools;
 * - `documents`: texts that are kept with sessions, for example responses;
 * - `approvals`: tool calls that wait for a person's approval;
 * - `idempotency`: answers to requests with an idempotency key;
 * - `state`: what plugins keep in `ctx.state`. It does not count towards the limits of a project,
 *   and a store never evicts it.
 *
 * `sessionStoreContract` of `@plugboard/testing` tests all six. Everything that comes from
 * a request is data to a store: it never becomes part of a path or of a statement.
 *
 * @public
 */
export interface SessionStore extends ConversationStore {
  /**
   * Whether everything is lost when the process ends. The runtime then stores nothing that only a
   * later process would read. By default false.
   */
  readonly isVolatile?: boolean;
  readonly pendingToolCalls: PendingToolCalls;
  readonly documents: DocumentStore;
  readonly approvals: ApprovalStore;
  readonly idempotency: IdempotencyStore;
  readonly state: StateStore;
  /** What servers need that share the store. Absent if one server at a time uses it. */
  readonly shared?: SharedStore | undefined;
  /**
   * Reports whether the store works at the moment. `reason` says what is wrong and what to do. The
   * runtime asks at each readiness probe, is not ready while `ok` is false, and logs the reason.
   */
  health(): Promise<{ readonly ok: boolean; readonly reason?: string }>;
}

/** The extension point of the session store: `agent.session-store`, exactly one. @public */
export const SessionStores = defineExtensionPoint<SessionStore>('agent.session-store', {
  discipline: 'one',
  shape: {
    load: 'function',
    version: 'function',
    'generation?': 'object',
    begin: 'function',
    commit: 'function',
    abandon: 'function',
    recover: 'function',
    create: 'function',
    info: 'function',
    find: 'function',
    list: 'function',
    setMetadata: 'function',
    turns: 'function',
    putSummary: 'function',
    fork: 'function',
    delete: 'function',
    pendingToolCalls: 'object',
    documents: 'object',
    approvals: 'object',
    idempotency: 'object',
    state: 'object',
    'isVolatile?': 'boolean',
    'shared?': 'object',
    health: 'function',
  },
});
