import { defineExtensionPoint } from '../host/extension-point.js';
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.js';
import type { Message } from './message.js';

/** Which conversation. Three values, never joined into one: `a:b` of one agent is not `b` of another. */
export interface SessionId {
  /** From the credential only. */
  readonly project: string;
  /** The agent that answers in it, or the raw model. */
  readonly agent: string;
  /** The visible key. Data: never a path, never SQL text. */
  readonly key: string;
}

/**
 * Where conversations are kept. Discipline: exactly one.
 *
 * 1. A session `load`s what is kept when it is used, and `begin`s a turn before the first model call. What `begin` wrote survives a killed
 *    process; it need not survive a power cut.
 * 2. When the turn has ended well, one `commit` adds its messages and raises the version by one, all or nothing, and only if the version
 *    is still the one that the turn began with. Only then is the caller told that the turn has ended: what was acknowledged is kept.
 * 3. When it has not, `abandon` takes the turn back, and the conversation is as it was.
 * 4. When the server starts, `recover` tells of the turns that began and neither ended nor were taken back: their process died.
 * 5. A session is there from its `create` or its first commit until its `delete`, or until it has not been used for too long. What is deleted leaves its
 *    version behind for 30 days: a session that begins anew under the key goes on from there, so that nobody who still holds the old one can commit to it.
 *
 * Whatever comes from a request is data to a store: it builds neither a path nor a statement from it.
 */
export interface SessionStore {
  /** What is kept; version 0 and no messages for a session that nobody has used, and no messages for one that was deleted. */
  load(id: SessionId): Promise<StoredSession>;
  /** The version alone, to tell whether what is in memory is still true. */
  version(id: SessionId): Promise<number>;
  begin(id: SessionId, turn: TurnBegin): Promise<void>;
  /** Adds a turn, and ends it. @throws VersionConflict where the session has moved on since it was loaded. */
  commit(id: SessionId, turn: TurnCommit): Promise<void>;
  /** Takes a turn back that has begun. */
  abandon(id: SessionId, turnId: string): Promise<void>;
  /** The turns that a process left when it died, each told once. */
  recover(): Promise<readonly InterruptedTurn[]>;
  /**
   * Keeps what a stateless turn must remember until its caller comes back with the results of the caller's own tools: for an hour,
   * under each of these keys.
   */
  park(owner: ParkOwner, keys: readonly string[], messages: readonly Message[]): Promise<void>;
  /** What was parked under that key, or undefined. */
  parked(owner: ParkOwner, key: string): Promise<readonly Message[] | undefined>;
  /** Makes a session before its first turn. Where it comes with messages, they are turn 1 of it. @throws SessionExists */
  create(id: SessionId, session: NewSession): Promise<void>;
  /** What is known of a session besides its messages, or undefined where there is none. */
  facts(id: SessionId): Promise<SessionFacts | undefined>;
  /** The same by its opaque id (`conversationId`), for sessions of that project only. */
  find(project: string, conversation: string): Promise<SessionFacts | undefined>;
  /** The sessions of one project, in the order in which they were created. */
  list(project: string, page: SessionPage): Promise<readonly SessionFacts[]>;
  /** What the caller attached, in the place of what was attached before; nothing happens where there is no such session. */
  setMetadata(id: SessionId, metadata: Metadata): Promise<void>;
  /** The messages, turn by turn. */
  turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]>;
  /** Keeps a summary of the oldest messages beside them, in the place of the one before; nothing happens where the session is not at that version any more. */
  putSummary(id: SessionId, version: number, summary: Summary): Promise<void>;
  /**
   * Copies a session to another key of the same project and agent: its metadata, user, and first `turns` turns (all where it has fewer), which are turns 1 to `turns` of the copy. The
   * summary is copied where all that it covers is. Nothing happens where there is no such session. @throws SessionExists where there is a session under that key.
   */
  fork(id: SessionId, key: string, turns: number): Promise<void>;
  /** Deletes a session with all that came of it. @returns whether there was one. */
  delete(id: SessionId): Promise<boolean>;
  /** What was answered to requests that may be repeated. */
  readonly idempotency: IdempotencyStore;
  /** Whether it can work now. */
  health(): Promise<{ readonly ok: boolean; readonly reason?: string }>;
}

export const SessionStores = defineExtensionPoint<SessionStore>('agent.session-store', { discipline: 'one' });

export interface StoredSession {
  /** Rises by one with each turn, and with a deletion. */
  readonly version: number;
  readonly messages: readonly Message[];
  /** Of the messages as JSON. */
  readonly bytes: number;
  /** What a model made of the oldest of them, where it did. */
  readonly summary?: Summary | undefined;
}

export interface Summary {
  /** So many of the oldest messages are in it. */
  readonly messages: number;
  readonly text: string;
}

/** At most 16 pairs: what a caller attached to a session. */
export type Metadata = Readonly<Record<string, string>>;

export interface NewSession {
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
}

export interface SessionFacts {
  readonly id: SessionId;
  /** The opaque id, as `conversationId` makes it. */
  readonly conversation: string;
  /** Milliseconds of the wall clock. */
  readonly createdAt: number;
  /** Of the last change: a turn, or other metadata. */
  readonly updatedAt: number;
  /** How many turns are kept. */
  readonly turns: number;
  /** Who the caller said is talking, in the newest turn that said so. */
  readonly user?: string | undefined;
  readonly metadata: Metadata;
}

export interface SessionPage {
  readonly limit: number;
  /** By the time of their creation. */
  readonly order: 'asc' | 'desc';
  /** The opaque id of the session that the page before ended with: nothing follows one that is not there. */
  readonly after?: string | undefined;
  /** Only those of this user. */
  readonly user?: string | undefined;
  /** Only those of these agents. */
  readonly agents?: readonly string[] | undefined;
}

export interface TurnPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Only what follows that turn, in the order asked for. */
  readonly after?: number | undefined;
}

export interface StoredTurn {
  /** From 1, without gaps. */
  readonly turn: number;
  readonly messages: readonly Message[];
}

export interface TurnBegin {
  /** Unique, also across processes. */
  readonly turnId: string;
  /** What the caller says, for an agent that keeps it where the turn is interrupted. */
  readonly input: readonly Message[];
}

export interface TurnCommit {
  /** The turn that ends with it, where one has begun. */
  readonly turnId?: string | undefined;
  /** The version that was loaded. */
  readonly expected: number;
  /** The turn's messages: what the caller said, and all that came of it. */
  readonly messages: readonly Message[];
  /** Who the caller said is talking. */
  readonly user?: string | undefined;
  /** What the turn's request is answered with when it is repeated: kept together with the messages, or not at all. */
  readonly idempotency?: IdempotencyRecord | undefined;
}

/** A turn whose process died before it ended. */
export interface InterruptedTurn {
  readonly id: SessionId;
  readonly turnId: string;
  /** What the caller had said. */
  readonly input: readonly Message[];
}

export type ParkOwner = Omit<SessionId, 'key'>;

/** The session is no longer as it was loaded: someone else committed meanwhile. */
export class VersionConflict extends Error {
  override readonly name = 'VersionConflict';

  constructor(expected: number, found: number) {
    super(`the session is at version ${found}, not ${expected}: another writer has committed a turn meanwhile`);
  }
}

/** There is a session under that key. */
export class SessionExists extends Error {
  override readonly name = 'SessionExists';

  constructor() {
    super('there is a session under that key already');
  }
}
