import type { Message } from '../message.js';
import type { IdempotencyRecord } from '../points/idempotency-store.js';
import type { SessionId, SessionStore, StoredSession } from '../points/session-store.js';

/** What an active session knows of its conversation, so that it need not be read again for every turn. */
export class History {
  readonly id: SessionId;
  readonly store: SessionStore;
  #known: StoredSession | undefined;

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

  /**
   * Commits a turn upon the conversation that it began with. Where that has moved on meanwhile, nothing is kept: what the model answered was an answer to something else.
   *
   * @throws what the store throws; nothing is known then, because nobody can say how much of it happened.
   */
  async commit(
    turnId: string,
    { version, messages }: StoredSession,
    added: readonly Message[],
    idempotency?: IdempotencyRecord,
  ): Promise<void> {
    this.#known = undefined;
    await this.store.commit(this.id, { turnId, expected: version, messages: added, idempotency });
    this.#known = { version: version + 1, messages: [...messages, ...added] };
  }
}
