import type { SessionStore } from '@plugboard/kernel';
import type { SessionId, StoredSession, Summary, TurnCommit } from '@plugboard/kernel/contracts';
import { bytesOf } from '../history/message-size.js';

/**
 * Turns without a new attempt after a failed summary: it would most likely fail again, at the same
 * cost.
 */
const SUMMARY_COOLDOWN = 4;

/** The conversation of an active session, cached between turns. */
export class SessionHistory {
  readonly id: SessionId;
  readonly store: SessionStore;
  readonly #onResize: (bytes: number) => void;
  #known: StoredSession | undefined;
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
   * that `messageJson` keeps with them. An upper bound, because texts of large messages are not kept.
   */
  get cachedBytes(): number {
    return 2 * (this.#known?.bytes ?? 0);
  }

  /** Drops the cache. The next turn loads the conversation again. */
  release(): void {
    this.#cache(undefined);
  }

  /** Returns the stored conversation: from memory if the store is still at the same version. */
  async current(): Promise<StoredSession> {
    if (this.#known && (await this.store.version(this.id)) === this.#known.version) return this.#known;
    this.#cache(undefined);
    const stored = await this.store.load(this.id);
    this.#cache(stored);
    return stored;
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
  async summarize(stored: StoredSession, summary: Summary): Promise<void> {
    if (this.#known === stored) this.#cache({ ...stored, summary });
    await this.store.putSummary(this.id, stored.version, summary);
  }

  /**
   * Commits a turn on top of the conversation it began with. If the session has moved on, nothing
   * is stored.
   *
   * @throws what the store throws. The cache is then dropped: how much of the commit took effect is
   *   unknown.
   */
  async commit({ version, messages, bytes, summary }: StoredSession, turn: Omit<TurnCommit, 'expected'>): Promise<void> {
    this.#cache(undefined);
    await this.store.commit(this.id, { ...turn, expected: version });
    this.#cache({
      version: version + 1,
      messages: [...messages, ...turn.messages],
      bytes: turn.messages.reduce((sum, message) => sum + bytesOf(message), bytes),
      summary,
    });
  }

  #cache(stored: StoredSession | undefined): void {
    const before = this.cachedBytes;
    this.#known = stored;
    if (this.cachedBytes !== before) this.#onResize(this.cachedBytes - before);
  }
}
