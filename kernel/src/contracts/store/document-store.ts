import type { SessionId } from './conversation-store.js';

/**
 * Texts that transports keep with sessions and find again by a name that they gave out, for example
 * responses by their ids.
 *
 * 1. `put` stores a text with a session. It stays as long as the session does, and is deleted with
 *    it; `fork` does not copy it.
 * 2. `get` finds it by project and name: who asks need not know the session.
 *
 * @experimental
 */
export interface DocumentStore {
  /** Stores a text under a name of the project. Does nothing if the session does not exist. */
  put(id: SessionId, name: string, text: string): Promise<void>;
  /**
   * @param reserve called with the size of the text before the store reads it. What it throws is
   *   thrown on.
   */
  get(project: string, name: string, reserve?: (bytes: number) => void): Promise<StoredDocument | undefined>;
  /**
   * Deletes a text.
   * @returns how many the session has left of its kind, whose names have the same beginning up to
   *   the first `_`; undefined if there was none.
   */
  delete(project: string, name: string): Promise<number | undefined>;
}

/** A text that a store keeps with a session. @experimental */
export interface StoredDocument {
  /** The session that it is kept with. */
  readonly id: SessionId;
  readonly text: string;
}
