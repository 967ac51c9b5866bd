import type { Metadata, SessionInfo, SessionPage, StoredTurn, TurnPage } from './conversation-store.js';
import type { Message } from './message.js';
import type { Principal } from './principal.js';
import type { Target } from './target.js';

/**
 * What callers may do with their sessions besides running turns in them. Each method reaches the sessions of the principal's project alone, and among them those of agents
 * that the principal may use; any other is as good as none. What is asked of a session that runs a turn waits for nothing: it is done beside the turn, is
 * refused, or ends the turn.
 *
 * Scopes are the transports' to ask for. All methods reject with a `TurnError`: `conversation_not_found` for an id that leads nowhere, `store_failed`, and what they say.
 */
export interface Conversations {
  /** Makes a session of an agent. @throws TurnError `conversation_exists` where the key is taken; `invalid_request`. */
  create(target: Target, conversation: NewConversation, principal: Principal): Promise<Conversation>;
  list(page: Omit<SessionPage, 'agents'>, principal: Principal): Promise<readonly Conversation[]>;
  get(id: string, principal: Principal): Promise<Conversation>;
  setMetadata(id: string, metadata: Metadata, principal: Principal): Promise<Conversation>;
  turns(id: string, page: TurnPage, principal: Principal): Promise<ConversationTurns>;
  /** Adds messages as a turn of their own. @throws TurnError `session_busy` while a turn runs; `session_full`; `invalid_request` where no model would take the conversation then. */
  append(id: string, messages: readonly Message[], principal: Principal): Promise<ConversationTurns>;
  /** Copies a session up to a turn, all of it where none is given. @throws TurnError `conversation_exists`; `invalid_request`. */
  fork(id: string, copy: ForkRequest, principal: Principal): Promise<Conversation>;
  /**
   * Keeps a text with a session for as long as the session is kept, under a name that is unique within the project. Transports store under it what they must find again by an id
   * that they gave out, for example a response.
   */
  putDocument(id: string, name: string, text: string, principal: Principal): Promise<void>;
  /** The text under a name; undefined if there is none that the principal reaches. */
  document(name: string, principal: Principal): Promise<ConversationDocument | undefined>;
  /** Deletes a text. @returns whether there was one. */
  deleteDocument(name: string, principal: Principal): Promise<boolean>;
  /** Ends what waits and what runs in it; ends when that has settled. */
  cancel(id: string, principal: Principal): Promise<Conversation>;
  /** Ends what waits and what runs in it, and deletes it. */
  delete(id: string, principal: Principal): Promise<void>;
}

/** A session as its caller is told of it. */
export interface Conversation extends SessionInfo {
  readonly status: 'idle' | 'running' | 'quarantined';
}

export interface ConversationTurns {
  readonly turns: readonly StoredTurn[];
  /** What callers are shown of the agent's tool calls. */
  readonly toolVisibility: Target['toolVisibility'];
  /** What a tool of the agent is called outside the model; undefined for a tool that the caller brought, and for one that is gone. */
  toolOf(nameAtModel: string): { readonly entry: string; readonly name: string } | undefined;
}

export interface ConversationDocument {
  /** The opaque id of the session that it belongs to. */
  readonly conversation: string;
  /** The agent of that session. */
  readonly agent: string;
  readonly text: string;
}

export interface NewConversation {
  /** A random one where it is absent. */
  readonly key?: string | undefined;
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
}

export interface ForkRequest {
  /** Of the copy; a random one where it is absent. */
  readonly key?: string | undefined;
  /** The last turn that is copied. */
  readonly turns?: number | undefined;
}
