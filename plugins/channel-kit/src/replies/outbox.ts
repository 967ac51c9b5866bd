import type { ChannelState, Values } from '../state/channel-state.js';
import { KEYS, laneOf } from '../state/keys.js';
import type { Progress, StoredReply } from '../state/records.js';
import type { WaitingBudget } from '../state/waiting-budget.js';
import type { FailedReplies } from './failed-replies.js';
import type { PendingReply } from './pending-reply.js';

/** A reply that is about to be stored with something else. */
export interface PreparedReply {
  readonly values: Values;
  /** Called when the values are stored. @param kept what the platform keeps about the reply. */
  done(kept?: unknown): void;
}

const NOT_BEGUN: Progress = { index: 0, attempts: 0 };

/**
 * The replies that the platform does not have yet.
 *
 * 1. A reply is stored in the transaction that ends its message, under the same number.
 * 2. Each part that the platform has taken is noted. After the last one, the reply is removed.
 * 3. What failed for good moves to the list of failed replies.
 */
export class Outbox {
  readonly #state: ChannelState;
  readonly #budget: WaitingBudget;
  readonly #failed: FailedReplies;
  readonly #onAdded: (reply: PendingReply) => void;
  /** The numbers of those that wait, by lane. */
  readonly #lanes = new Map<string, Set<string>>();

  /** @param onAdded receives each reply that is stored, also those of earlier lives. */
  constructor(state: ChannelState, budget: WaitingBudget, failed: FailedReplies, onAdded: (reply: PendingReply) => void) {
    this.#state = state;
    this.#budget = budget;
    this.#failed = failed;
    this.#onAdded = onAdded;
  }

  get size(): number {
    return this.#lanes.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** How many replies of a lane wait. */
  sizeOf(lane: string): number {
    return this.#lanes.get(lane)?.size ?? 0;
  }

  /** Reads what earlier lives left. @param onSeq receives the number of each. */
  async load(onSeq: (seq: string) => void): Promise<void> {
    for await (const { key: seq, value, pieces, size } of this.#state.all<StoredReply>(KEYS.replies)) {
      onSeq(seq);
      await this.#resume(seq, value, pieces, size);
    }
  }

  /**
   * Takes over a reply that was stored, although the store said that it failed.
   */
  async adopt(seq: string): Promise<void> {
    const reply = await this.#state.get<StoredReply>(KEYS.reply(seq));
    if (!reply) return;
    const { pieces, size } = this.#state.encode(KEYS.reply(seq), reply);
    await this.#resume(seq, reply, pieces, size);
  }

  prepare(seq: string, reply: StoredReply, progress = NOT_BEGUN): PreparedReply {
    const { values, pieces, size } = this.#state.encode(KEYS.reply(seq), reply);
    return {
      values: progress === NOT_BEGUN ? values : { ...values, [KEYS.progress(seq)]: progress },
      done: (kept) => this.#add(seq, reply, { pieces, size, kept, progress, mayHaveArrived: progress !== NOT_BEGUN }),
    };
  }

  /** Stores a reply by itself. */
  async add(seq: string, reply: StoredReply): Promise<void> {
    const { values, done } = this.prepare(seq, reply);
    await this.#state.store(values);
    done();
  }

  read(reply: PendingReply): Promise<StoredReply | undefined> {
    return this.#state.get<StoredReply>(KEYS.reply(reply.seq));
  }

  /** Notes how far a reply has come. */
  async note(reply: PendingReply, progress: Progress, kept: unknown = reply.kept): Promise<void> {
    const { seq } = reply;
    await this.#state.store({
      [KEYS.progress(seq)]: progress,
      ...(kept !== reply.kept && { [KEYS.kept(seq)]: kept }),
    });
    reply.progress = progress;
    reply.kept = kept;
  }

  /** Removes a reply whose last part was taken. */
  async remove(reply: PendingReply): Promise<void> {
    await this.#state.store(this.#removal(reply));
    this.#forget(reply);
  }

  async fail(pending: PendingReply, reply: StoredReply, reason: string): Promise<void> {
    await this.#failed.add(pending, reply, reason, this.#removal(pending));
    this.#forget(pending);
  }

  /** Sends a failed reply again, from the part that failed. @returns false for an unknown id. */
  async retry(id: string): Promise<boolean> {
    const found = await this.#failed.find(id);
    if (!found) return false;
    const { seq, removal } = found;
    const { reason, attempts, failedAt, index, kept, ...reply } = found.reply;
    const { values, done } = this.prepare(seq, reply, { index, attempts: 0 });
    await this.#state.store({ ...removal, ...values, ...(kept !== undefined && { [KEYS.kept(seq)]: kept }) });
    this.#failed.forget(id);
    done(kept);
    return true;
  }

  /** Removes a failed reply. @returns false for an unknown id. */
  async drop(id: string): Promise<boolean> {
    const found = await this.#failed.find(id);
    if (!found) return false;
    await this.#state.store(found.removal);
    this.#failed.forget(id);
    return true;
  }

  async #resume(seq: string, reply: StoredReply, pieces: number, size: number): Promise<void> {
    const progress = (await this.#state.get<Progress>(KEYS.progress(seq))) ?? NOT_BEGUN;
    const kept = await this.#state.get(KEYS.kept(seq));
    this.#add(seq, reply, { pieces, size, kept, progress, mayHaveArrived: true });
  }

  #add(
    seq: string,
    reply: StoredReply,
    { size, ...rest }: Pick<PendingReply, 'pieces' | 'kept' | 'progress' | 'mayHaveArrived'> & { readonly size: number },
  ): void {
    const { id, chat } = reply;
    const lane = laneOf(reply);
    const own = this.#lanes.get(lane) ?? new Set();
    if (own.has(seq)) return;
    this.#lanes.set(lane, own.add(seq));
    this.#onAdded({ seq, id, lane, chat, release: this.#budget.take(chat, size), ...rest });
  }

  #removal({ seq, pieces }: PendingReply): Values {
    return {
      ...this.#state.removal(KEYS.reply(seq), pieces),
      [KEYS.progress(seq)]: undefined,
      [KEYS.kept(seq)]: undefined,
    };
  }

  #forget({ lane, seq, release }: PendingReply): void {
    release?.();
    const own = this.#lanes.get(lane);
    own?.delete(seq);
    if (own?.size === 0) this.#lanes.delete(lane);
  }
}
