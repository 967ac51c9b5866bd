import type { Principal } from '../callers/principal.js';
import type { AgentEvent } from '../events/event.js';
import type { Message } from '../messages/message.js';
import type { Metadata, SessionInfo, SessionPage, StoredTurn, TurnPage } from '../store/conversation-store.js';
import type { Account } from './account.js';
import type { ApprovalDecision } from './approvals.js';
import type { Target } from './target.js';
import type { TurnRecord } from './turn-record.js';

/**
 * Session operations other than turns. Each method reaches only sessions of the principal's project
 * and of agents that the principal may use; any other id is `conversation_not_found`. No method
 * waits for a running turn: it works beside the turn, is refused, or ends the turn.
 *
 * What a method returns is reserved in the account that it is given before it is read from the
 * store (S-71).
 *
 * Transports check scopes. All methods reject with a `TurnError`: `conversation_not_found`,
 * `store_failed`, and what they name.
 *
 * @experimental
 */
export interface Conversations {
  /**
   * Creates a session of an agent.
   * @throws TurnError `conversation_exists` if the key is taken; `invalid_request`.
   */
  create(target: Target, conversation: NewConversation, principal: Principal): Promise<Conversation>;
  /**
   * Lists the sessions that match every filter, in the order of their last activity; also those
   * whose first turn runs. `search` matches a part of the title, the key or the metadata's `title`,
   * in upper or lower case, and `metadata` the whole value of an entry.
   */
  list(
    page: Omit<SessionPage, 'agents'> & {
      readonly agent?: string | undefined;
      readonly status?: Conversation['status'] | undefined;
      readonly search?: string | undefined;
      readonly metadata?: { readonly name: string; readonly value: string } | undefined;
    },
    principal: Principal,
    account: Account,
  ): Promise<readonly Conversation[]>;
  get(id: string, principal: Principal): Promise<Conversation>;
  setMetadata(id: string, metadata: Metadata, principal: Principal): Promise<Conversation>;
  /** With `approval`, only the turn that asked for it last, found without a look at the others. */
  turns(
    id: string,
    page: Omit<TurnPage, 'reserve'> & { readonly approval?: string | undefined },
    principal: Principal,
    account: Account,
  ): Promise<ConversationTurns>;
  /**
   * Watches the turns of a session, whatever transport began them: those that wait or run, and
   * those that begin later. The first batch of a turn is what it has sent before, in fewer events,
   * and may be empty; its last one has the terminal event. Watching neither slows a turn nor keeps
   * it running. `events.return()` ends it.
   * @param maxBehind approximate bytes. The events of a watcher that is further behind end.
   * @returns the turns that wait or run now, the number of those that are stored, and the events.
   */
  watch(
    id: string,
    principal: Principal,
    maxBehind: number,
  ): Promise<{
    readonly turns: readonly WatchedTurn[];
    readonly stored: number;
    readonly events: AsyncIterable<{
      readonly turn: WatchedTurn;
      readonly batch: readonly AgentEvent[];
      /** Approximate bytes of what is made of the batch. */
      readonly size: number;
    }> & {
      return(): unknown;
    };
  }>;
  /**
   * Adds messages as a turn of their own.
   * @throws TurnError `session_busy` while a turn runs; `approval_pending` while tool calls wait
   *   for approval; `session_full`; `invalid_request` if no model would accept the result.
   */
  append(id: string, messages: readonly Message[], principal: Principal, account: Account): Promise<ConversationTurns>;
  /**
   * Copies a session up to a turn, or whole. Tool calls that wait for approval are denied in the
   * copy.
   * @throws TurnError `conversation_exists`; `invalid_request`.
   */
  fork(id: string, copy: ForkRequest, principal: Principal): Promise<Conversation>;
  /**
   * Keeps a text with a session for as long as the session is kept, under a name that is unique
   * within the project. Transports store under it what they must find again by an id that they gave
   * out, for example a response.
   */
  putDocument(id: string, name: string, text: string, principal: Principal): Promise<void>;
  /** The text under a name; undefined if there is none that the principal reaches. */
  document(name: string, principal: Principal, account: Account): Promise<ConversationDocument | undefined>;
  /**
   * Deletes a text.
   * @returns how many texts of its kind are left with its session, whose names have the same
   *   beginning up to the first `_`; undefined if there was none.
   */
  deleteDocument(name: string, principal: Principal, account: Account): Promise<number | undefined>;
  /**
   * Ends the waiting and running turns of a session, and denies its tool calls that wait for
   * approval. Resolves when they have settled.
   */
  cancel(id: string, principal: Principal, account: Account): Promise<Conversation>;
  /** Ends the waiting and running turns of a session and deletes it. */
  delete(id: string, principal: Principal): Promise<void>;
}

/** A session as shown to its caller. @experimental */
export interface Conversation extends SessionInfo {
  readonly status: 'idle' | 'running' | 'quarantined';
}

/** A turn of a session that is watched: one object for all its watchers. @experimental */
export interface WatchedTurn {
  /** The same for all watchers: that of its request, if it has one. */
  readonly id: string;
  readonly target: Target;
  /** When its request arrived, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** The new messages of its request: those after the last answer, without system messages. */
  readonly messages: readonly Message[];
  /** Bytes of the messages as JSON. */
  readonly size: number;
  readonly approvals: readonly ApprovalDecision[];
  /** Whether other turns of its session had to end first when it was first shown. */
  readonly isWaiting: boolean;
  /** How many those were. */
  readonly ahead: number;
  /** What has happened in it so far: see `TurnEvents.record`. */
  readonly record?: TurnRecord | undefined;
  /** Ends it for all its readers: see `TurnEvents.cancel`. */
  cancel(): Promise<void>;
}

/** A page of a session's turns, and what is needed to show their tool calls. @experimental */
export interface ConversationTurns {
  readonly turns: readonly (Omit<StoredTurn, 'record'> & {
    /** What happened in the turn. Absent for messages that no turn brought, and for old turns. */
    readonly record?: TurnRecord | undefined;
  })[];
  /** How much of the agent's tool calls callers may see. */
  readonly toolVisibility: Target['toolVisibility'];
  /** Maps a tool's name at the model to its entry and own name. Undefined for other tools. */
  toolOf(nameAtModel: string): { readonly entry: string; readonly name: string } | undefined;
}

/** A text that a transport keeps with a session. @experimental */
export interface ConversationDocument {
  /** The opaque id of the session that it belongs to. */
  readonly conversation: string;
  /** The agent of that session. */
  readonly agent: string;
  readonly text: string;
}

/** A session to create for a caller. @experimental */
export interface NewConversation {
  /** Defaults to a random key. */
  readonly key?: string | undefined;
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
}

/** How to copy a session. @experimental */
export interface ForkRequest {
  /** Key of the copy. Defaults to a random key. */
  readonly key?: string | undefined;
  /** The last turn to copy. Defaults to all. */
  readonly turns?: number | undefined;
}
