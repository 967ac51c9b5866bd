import { defineExtensionPoint } from '../../host/extension-point.js';
import type { Message } from '../message.js';

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
 * 1. Before the first model call of a turn the session `load`s what is kept.
 * 2. When the turn has ended well, one `commit` adds its messages and raises the version by one, all or nothing, and only if the version
 *    is still the one that was loaded. Only then is the caller told that the turn has ended.
 * 3. A turn that fails leaves no trace.
 */
export interface SessionStore {
  /** What is kept; version 0 and no messages for a session that nobody has used. */
  load(id: SessionId): Promise<StoredSession>;
  /** Adds a turn. @throws VersionConflict where the session has moved on since it was loaded. */
  commit(id: SessionId, turn: TurnCommit): Promise<void>;
  /**
   * Keeps what a stateless turn must remember until its caller comes back with the results of the caller's own tools: for an hour,
   * under the id of each call handed out.
   */
  park(owner: ParkOwner, callIds: readonly string[], messages: readonly Message[]): Promise<void>;
  /** What was parked under that call, or undefined. */
  parked(owner: ParkOwner, callId: string): Promise<readonly Message[] | undefined>;
  /** Whether it can work now. */
  health(): Promise<{ readonly ok: boolean; readonly reason?: string }>;
}

export const SessionStores = defineExtensionPoint<SessionStore>('agent.session-store', { discipline: 'one' });

export interface StoredSession {
  /** The number of turns kept. */
  readonly version: number;
  readonly messages: readonly Message[];
}

export interface TurnCommit {
  /** The version that was loaded. */
  readonly expected: number;
  /** The turn's messages: what the caller said, and all that came of it. */
  readonly messages: readonly Message[];
}

export type ParkOwner = Omit<SessionId, 'key'>;

/** The session is no longer as it was loaded: someone else committed meanwhile. */
export class VersionConflict extends Error {
  override readonly name = 'VersionConflict';

  constructor(expected: number, found: number) {
    super(`the session is at version ${found}, not ${expected}: another writer has committed a turn meanwhile`);
  }
}
