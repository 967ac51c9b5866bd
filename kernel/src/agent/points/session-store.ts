import { defineExtensionPoint } from '../../host/extension-point.js';
import type { Message } from '../message.js';
import type { IdempotencyRecord, IdempotencyStore } from './idempotency-store.js';

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
 *
 * Whatever comes from a request is data to a store: it builds neither a path nor a statement from it.
 */
export interface SessionStore {
  /** What is kept; version 0 and no messages for a session that nobody has used. */
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
  /** What was answered to requests that may be repeated. */
  readonly idempotency: IdempotencyStore;
  /** Whether it can work now. */
  health(): Promise<{ readonly ok: boolean; readonly reason?: string }>;
}

export const SessionStores = defineExtensionPoint<SessionStore>('agent.session-store', { discipline: 'one' });

export interface StoredSession {
  /** The number of turns kept. */
  readonly version: number;
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
