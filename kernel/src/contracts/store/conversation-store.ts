import { recognizeAcrossCopies } from '../../host/base/across-copies.js';
import type { StateChange } from '../../host/plugin/state.js';
import type { Message } from '../messages/message.js';
import type { IdempotencyRecord } from './idempotency-store.js';

/**
 * Identifies a session. Three separate values, never joined into one string: `a:b` of one agent is
 * not `b` of another.
 *
 * @public
 */
export interface SessionId {
  /** From the credential only. */
  readonly project: string;
  /** The agent that answers in the session, or the raw model. */
  readonly agent: string;
  /** The key that the caller chose or was given. Data: never part of a path or of SQL text. */
  readonly key: string;
}

/**
 * Sessions and their turns.
 *
 * 1. A turn calls `load`, then `begin` before its first model call. A turn that has begun survives
 *    a killed process; it need not survive a power failure.
 * 2. A turn that succeeds calls `commit` once. It appends the turn's messages and increments the
 *    version: all or nothing, and only if the version is still the one that was loaded. The caller
 *    sees the end of the turn after that, so an acknowledged turn is never lost.
 * 3. A turn that fails calls `abandon`. The session is then as it was before `begin`.
 * 4. At start the server calls `recover` once; where servers share the store, again and again
 *    (`SharedStore`). It returns the turns that began but neither ended nor were abandoned, because
 *    their process died.
 * 5. A session exists from `create` or its first commit until `delete`, or until it expires or is
 *    evicted. No store evicts a session between `begin` and the end of the turn. The version of a
 *    deleted or expired session is kept for 30 days. A new session with the same id continues from
 *    that version, so a turn that loaded the old one cannot commit, and a cached conversation is
 *    not taken for the new one.
 * 6. A store may limit what one project stores, idempotency records and pending tool calls
 *    included. At the limit, `begin`, `create`, `fork`, a `commit` of a turn that did not begin,
 *    and what stores such a record or call alone, throw `ProjectQuotaExceeded` and change nothing.
 *    Sessions can still be read and deleted, a turn that has begun can still be committed, and
 *    other projects are not affected. A store that evicts sessions at its limits evicts those of
 *    the same project.
 * 7. A session's title is `sessionTitle` of the messages of the first `create` or `commit` that
 *    returns one. It never changes after that, and a fork has the title of its source.
 *
 * @public
 */
export interface ConversationStore {
  /** Returns the conversation: version 0 of an unknown session, no messages of a deleted one. */
  load(id: SessionId): Promise<StoredSession>;
  /** Returns the version alone, which is enough to validate a cached conversation. */
  version(id: SessionId): Promise<number>;
  /**
   * While this is the same object, sessions change by commits of turns that began here, and in no
   * other way: a cached conversation is valid without a call of `version`. The store replaces it
   * before it creates, forks, appends to, deletes or expires a session. Absent in a store that
   * other processes change: `version` is called for each turn.
   */
  readonly generation?: object | undefined;
  begin(id: SessionId, turn: TurnBegin): Promise<void>;
  /**
   * Appends a turn and ends it.
   *
   * @throws VersionConflict if the session has changed since it was loaded, or a change of `state`
   * expected another value.
   * @throws LeaseEnded if servers share the store, and the turn has left the line (`SharedStore`).
   */
  commit(id: SessionId, turn: TurnCommit): Promise<void>;
  /** Ends a turn that began, without a trace in the session. Does nothing without such a turn. */
  abandon(id: SessionId, turnId: string): Promise<void>;
  /** Returns the turns of dead processes, each once. */
  recover(): Promise<readonly InterruptedTurn[]>;
  /**
   * Creates a session before its first turn. Messages, if there are any, become turn 1.
   *
   * @throws SessionExists
   */
  create(id: SessionId, session: NewSession): Promise<void>;
  /** Describes a session without its messages. Undefined if there is none. */
  info(id: SessionId): Promise<SessionInfo | undefined>;
  /** Describes a session by its opaque id (`conversationId`), if it belongs to the project. */
  find(project: string, conversation: string): Promise<SessionInfo | undefined>;
  /** Lists the sessions of a project in the order of their last activity (`updatedAt`). */
  list(project: string, page: SessionPage): Promise<readonly SessionInfo[]>;
  /** Replaces the metadata. Does nothing if there is no such session. */
  setMetadata(id: SessionId, metadata: Metadata): Promise<void>;
  /** Returns the messages turn by turn, each with its record. */
  turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]>;
  /** Stores a summary of the oldest messages, unless the session has another version. */
  putSummary(id: SessionId, version: number, summary: Summary): Promise<void>;
  /**
   * Copies a session to another key of the same project and agent: its metadata, its user and its
   * title, its first `turns` turns (or all, if it has fewer), numbered from 1, with their records.
   * The summary is copied if every message it covers is. Does nothing if there is no such session.
   * @throws SessionExists if the new key is taken.
   */
  fork(id: SessionId, key: string, turns: number): Promise<void>;
  /**
   * Deletes a session with its turns, metadata and summary, and the sessions that belong to it.
   * @returns whether it existed itself.
   */
  delete(id: SessionId): Promise<boolean>;
}

/** A conversation as a store returns it. @public */
export interface StoredSession {
  /** Incremented by each turn and by a deletion. */
  readonly version: number;
  /** Number of turns. After a deletion it starts again from 0, unlike the version. */
  readonly turns: number;
  readonly messages: readonly Message[];
  /** Total size of the messages as JSON. */
  readonly bytes: number;
  /** A model's summary of the oldest messages. */
  readonly summary?: Summary | undefined;
}

/** A model's summary of the oldest messages of a session. @public */
export interface Summary {
  /** How many of the oldest messages it covers. */
  readonly messages: number;
  readonly text: string;
}

/** What a caller attached to a session: at most 16 pairs. @public */
export type Metadata = Readonly<Record<string, string>>;

/** A session to create in a store. @public */
export interface NewSession {
  readonly metadata: Metadata;
  readonly messages: readonly Message[];
}

/** A session without its messages. @public */
export interface SessionInfo {
  readonly id: SessionId;
  /** The opaque id, made by `conversationId`. */
  readonly conversation: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** Time of the last turn, or of the creation, in milliseconds since the epoch. */
  readonly updatedAt: number;
  /** Number of turns. */
  readonly turns: number;
  /** Bytes in the store, at least those of its messages as JSON. Reserved before it is loaded. */
  readonly bytes: number;
  /** The end user, as named by the latest turn that named one. */
  readonly user?: string | undefined;
  /** Its subject, by its first message (`sessionTitle`). Absent before a user has said anything. */
  readonly title?: string | undefined;
  readonly metadata: Metadata;
  /** Whether a turn is in line, on any server. Undefined in a store for one server. */
  readonly isRunning?: boolean | undefined;
}

/** Which sessions of a project to list. @public */
export interface SessionPage {
  readonly limit: number;
  /** By last activity. */
  readonly order: 'asc' | 'desc';
  /**
   * The last session of the previous page, as it was then. The page begins where that was in the
   * list, also if the session has had a turn since, or is gone.
   */
  readonly after?: Pick<SessionInfo, 'conversation' | 'updatedAt'> | undefined;
  /** Only sessions of this end user. */
  readonly user?: string | undefined;
  /** Only sessions of these agents. */
  readonly agents?: readonly string[] | undefined;
}

/** Which turns of a session to return. @public */
export interface TurnPage {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Number of the last turn of the previous page. */
  readonly after?: number | undefined;
  /**
   * Ends the page early: with the first turn that brings the size of its messages, as JSON, to this
   * number of bytes. So a page has at least one turn, if there is one. Unlimited by default.
   */
  readonly maxBytes?: number | undefined;
  /**
   * Called with the size of each turn, its messages as JSON and its record, before the store reads
   * it. What it throws ends the reading, and is thrown on.
   */
  reserve?(bytes: number): void;
}

/** The messages of one turn of a session. @public */
export interface StoredTurn {
  /** Counted from 1, without gaps. */
  readonly turn: number;
  readonly messages: readonly Message[];
  /** The record of its commit. Absent if that had none. */
  readonly record?: string | undefined;
}

/** A turn that begins, for the store. @public */
export interface TurnBegin {
  /** Unique across processes. */
  readonly turnId: string;
  /**
   * The caller's messages, for agents that keep the input of an interrupted turn. Empty if the
   * transport runs such a turn again.
   */
  readonly input: readonly Message[];
  /**
   * The session that this one belongs to, of the same project, which belongs to no other itself:
   * this one is deleted with that one, and neither `list` nor `find` returns it. Kept with the
   * first turn that is committed.
   */
  readonly parent?: SessionId | undefined;
}

/** A turn that ends well, for the store. @public */
export interface TurnCommit {
  /** The turn that ends with this commit, if one began. */
  readonly turnId?: string | undefined;
  /** The version that was loaded. */
  readonly expected: number;
  /** The caller's messages and everything that followed them. */
  readonly messages: readonly Message[];
  /**
   * What happened in the turn, in the runtime's own form. Stored together with the messages, or not
   * at all, and kept as long as they are. It counts in the quotas of the project.
   */
  readonly record?: string | undefined;
  /** The end user, if the caller named one. */
  readonly user?: string | undefined;
  /** The answer to retries of the turn's request. Stored with the messages, or not at all. */
  readonly idempotency?: IdempotencyRecord | undefined;
  /** What plugins change in their state with the turn. Stored with the messages, or not at all. */
  readonly state?: readonly StateChange[] | undefined;
  /** New or changed requests for approval. Stored with the messages, or not at all. */
  readonly approvals?: readonly ApprovalChange[] | undefined;
}

/** A request for a person's approval that a turn makes or changes. @experimental */
export interface ApprovalChange {
  /** Unique within the project. */
  readonly id: string;
  /** Whether nobody has decided yet. Only such requests are listed. */
  readonly waits: boolean;
  /** Identifies the caller that began the turn (`callerId`). */
  readonly caller: string;
  /** When it no longer waits, in milliseconds since the epoch. */
  readonly expiresAt: number;
  /** What lists read of it, in the runtime's own form. */
  readonly listed: string;
  /** What else the runtime keeps. */
  readonly text: string;
}

/** A turn whose process died before it ended. @public */
export interface InterruptedTurn {
  readonly id: SessionId;
  readonly turnId: string;
  /** The caller's messages. */
  readonly input: readonly Message[];
}

/** The session, or a key of the state, has changed since it was read. @public */
export class VersionConflict extends Error {
  override readonly name = 'VersionConflict';

  static {
    recognizeAcrossCopies(VersionConflict, 'VersionConflict');
  }

  /** @param found the version of the session, or the change that expected another value. */
  constructor(expected: number, found: number | StateChange) {
    super(
      typeof found === 'number'
        ? `the session is at version ${found}, not ${expected}: another writer has committed a turn in the meantime`
        : `the key ${JSON.stringify(found.key)} of ${found.entry} has not the value that the turn expected: another writer has changed it`,
    );
  }
}

/** A project has reached a limit of the store. The message is for callers. @public */
export class ProjectQuotaExceeded extends Error {
  override readonly name = 'ProjectQuotaExceeded';

  static {
    recognizeAcrossCopies(ProjectQuotaExceeded, 'ProjectQuotaExceeded');
  }

  /** The option of the store that sets the limit. */
  readonly setting: string;

  /** @param limit the value of the option, in sessions or bytes. */
  constructor(setting: string, limit: number) {
    super(
      `The project has reached \`${setting}\` (${limit}) of the session store: delete conversations, ` +
        'or raise the limit under `sessions`.',
    );
    this.setting = setting;
  }
}

/** There already is a session under that id. @public */
export class SessionExists extends Error {
  override readonly name = 'SessionExists';

  static {
    recognizeAcrossCopies(SessionExists, 'SessionExists');
  }

  constructor() {
    super('a session with this key already exists');
  }
}
