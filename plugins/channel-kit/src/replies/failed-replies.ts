import type { Clock } from '@plugboard/kernel';
import type { ChannelState, Values } from '../state/channel-state.js';
import { FAILED_EXPIRES, KEYS } from '../state/keys.js';
import type { FailedReply, StoredReply } from '../state/records.js';
import type { PendingReply } from './pending-reply.js';

/** The place of a failed reply. */
interface Place {
  readonly seq: string;
  readonly pieces: number;
  readonly expiresAt: number;
}

/** The replies that failed for good, for 30 days (CH-2). */
export class FailedReplies {
  readonly #state: ChannelState;
  readonly #clock: Clock;
  readonly #places = new Map<string, Place>();

  constructor(state: ChannelState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
  }

  async load(): Promise<void> {
    for await (const { key: seq, value, pieces } of this.#state.all<FailedReply>(KEYS.failures))
      this.#places.set(value.id, { seq, pieces, expiresAt: value.failedAt + FAILED_EXPIRES });
  }

  get count(): number {
    const now = this.#clock.now();
    for (const [id, { expiresAt }] of this.#places) if (expiresAt <= now) this.#places.delete(id);
    return this.#places.size;
  }

  async list(): Promise<readonly FailedReply[]> {
    const found: FailedReply[] = [];
    for await (const { value } of this.#state.all<FailedReply>(KEYS.failures)) found.push(value);
    return found;
  }

  /** Puts a reply into the list, in one transaction with its removal from the outbox. */
  async add({ seq, progress, kept }: PendingReply, reply: StoredReply, reason: string, removal: Values): Promise<void> {
    const { index, attempts } = progress;
    const failed: FailedReply = { ...reply, reason, attempts, failedAt: this.#clock.now(), index, kept };
    const { values, pieces } = this.#state.encode(KEYS.failure(seq), failed);
    await this.#state.store(removal, this.#state.changes(values, FAILED_EXPIRES));
    this.#places.set(reply.id, { seq, pieces, expiresAt: failed.failedAt + FAILED_EXPIRES });
  }

  /** Finds a reply of the list, and what removes it. */
  async find(id: string): Promise<{ readonly seq: string; readonly reply: FailedReply; readonly removal: Values } | undefined> {
    const place = this.#places.get(id);
    const reply = place && (await this.#state.get<FailedReply>(KEYS.failure(place.seq)));
    return reply && { seq: place.seq, reply, removal: this.#state.removal(KEYS.failure(place.seq), place.pieces) };
  }

  forget(id: string): void {
    this.#places.delete(id);
  }
}
