import type { Message, SessionStore } from '@plugboard/kernel';
import type { SessionId, StoredSession, Summary, TurnCommit } from '@plugboard/kernel/contracts';
import { bytesOf } from '../history/message-size.js';

/**
 * Turns without a new attempt after a failed summary: it would most likely fail again, at the same
 * cost.
 */
const SUMMARY_COOLDOWN = 4;

/** A conversation in memory. A commit appends the messages of its turn to it. */
export interface LoadedSession extends StoredSession {
  readonly messages: Message[];
}

/** The conversation of an active session, cached between turns. */
export class SessionHistory {
  readonly id: SessionId;
  readonly store: SessionStore;
  readonly #onResize: (bytes: number) => void;
  #known: LoadedSession | undefined;
  /** What was reported to `#onResize`. */
  #cachedBytes = 0;
  /** No summary is requested before this version. */
  #summaryFrom = 0;

  /** @param onResize called with the change of `cachedBytes` whenever it changes. */
  constructor(id: SessionId, store: SessionStore, onResize: (bytes: number) => void = () => {}) {
    this.id = id;
    this.store = store;
    this.#onResize = onResize;
  }

  /**
   * Memory of the cached messages: twice their size as JSON, for the objects and for the JSON text
   * that a model connector may keep with them. An upper bound.
   */
  get cachedBytes(): number {
    return this.#cachedBytes;
  }

  /** Drops the cache. The next turn loads the conversation again. */
  release(): void {
    this.#cache(undefined);
  }

  /** Returns the stored conversation: from memory if the store is still at the same version. */
  async current(): Promise<LoadedSession> {
    if (this.#known && (await this.store.version(this.id)) === this.#known.version) return this.#known;
    this.#cache(undefined);
    const stored = await this.store.load(this.id);
    // Messages of a store may be frozen, and then could not keep their sizes and texts.
    const loaded = { ...stored, messages: stored.messages.map((message) => ({ ...message })) };
    this.#cache(loaded);
    return loaded;
  }

  /** Whether a summary may be requested for the loaded conversation. */
  maySummarize({ version }: StoredSession): boolean {
    return version >= this.#summaryFrom;
  }

  /** Records that a summary of the loaded conversation failed. */
  noteFailedSummary({ version }: StoredSession): void {
    this.#summaryFrom = version + 1 + SUMMARY_COOLDOWN;
  }

  /**
   * Stores a summary. If the store fails, the summary lasts as long as the session is in memory.
   * @throws what the store throws.
   */
  async summarize(stored: LoadedSession, summary: Summary): Promise<void> {
    if (this.#known === stored) this.#cache({ ...stored, summary });
    await this.store.putSummary(this.id, stored.version, summary);
  }

  /**
   * Commits a turn on top of the conversation it began with, and appends its messages to it. If the
   * session has moved on, nothing is stored.
   *
   * @throws what the store throws. The cache is then dropped: how much of the commit took effect is
   *   unknown.
   */
  async commit({ version, turns, messages, bytes, summary }: LoadedSession, turn: Omit<TurnCommit, 'expected'>): Promise<void> {
    this.#known = undefined;
    let committed: LoadedSession | undefined;
    try {
      await this.store.commit(this.id, { ...turn, expected: version });
      messages.push(...turn.messages);
      const added = turn.messages.reduce((sum, message) => sum + bytesOf(message), 0);
      committed = { version: version + 1, turns: turns + 1, messages, bytes: bytes + added, summary };
    } finally {
      this.#cache(committed);
    }
  }

  #cache(loaded: LoadedSession | undefined): void {
    const change = 2 * (loaded?.bytes ?? 0) - this.#cachedBytes;
    this.#known = loaded;
    this.#cachedBytes += change;
    if (change !== 0) this.#onResize(change);
  }
}
