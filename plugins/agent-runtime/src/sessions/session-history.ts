import type { SessionId, SessionStore, StoredSession, Summary, TurnCommit } from '@plugboard/kernel';
import { bytesOf } from '../history/message-size.js';

/** So many turns do without a summary after one that could not be made: what failed just now would most likely fail again, and cost as much. */
const SUMMARY_COOLDOWN = 4;

/** What an active session knows of its conversation, so that it need not be read again for every turn. */
export class SessionHistory {
  readonly id: SessionId;
  readonly store: SessionStore;
  #known: StoredSession | undefined;
  /** From which version on a summary may be asked for. */
  #summaryFrom = 0;

  constructor(id: SessionId, store: SessionStore) {
    this.id = id;
    this.store = store;
  }

  /** The conversation as it is kept: from memory, where the store is still at the same version. */
  async current(): Promise<StoredSession> {
    if (this.#known && (await this.store.version(this.id)) === this.#known.version) return this.#known;
    this.#known = undefined;
    this.#known = await this.store.load(this.id);
    return this.#known;
  }

  /** Whether a summary of what was loaded may be asked for now. */
  maySummarize({ version }: StoredSession): boolean {
    return version >= this.#summaryFrom;
  }

  /** A summary of what was loaded could not be made. */
  noteFailedSummary({ version }: StoredSession): void {
    this.#summaryFrom = version + 1 + SUMMARY_COOLDOWN;
  }

  /** Keeps a summary of the oldest messages of what was loaded; where the store cannot, it lasts as long as the session is in memory. @throws what the store throws. */
  async summarize(stored: StoredSession, summary: Summary): Promise<void> {
    if (this.#known === stored) this.#known = { ...stored, summary };
    await this.store.putSummary(this.id, stored.version, summary);
  }

  /**
   * Commits a turn upon the conversation that it began with. Where that has moved on meanwhile, nothing is kept: what the model answered was an answer to something else.
   *
   * @throws what the store throws; nothing is known then, because nobody can say how much of it happened.
   */
  async commit({ version, messages, bytes, summary }: StoredSession, turn: Omit<TurnCommit, 'expected'>): Promise<void> {
    this.#known = undefined;
    await this.store.commit(this.id, { ...turn, expected: version });
    this.#known = {
      version: version + 1,
      messages: [...messages, ...turn.messages],
      bytes: turn.messages.reduce((sum, message) => sum + bytesOf(message), bytes),
      summary,
    };
  }
}
