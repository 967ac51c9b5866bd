import type { ChannelState } from '../state/channel-state.js';
import { KEYS, laneOf } from '../state/keys.js';
import type { StoredMessage } from '../state/records.js';
import type { WaitingBudget } from '../state/waiting-budget.js';
import { ChatQueue } from './chat-queue.js';
import { commandOf } from './commands.js';
import type { TurnDependencies } from './message-turn.js';
import type { QueuedMessage } from './queued-message.js';

/** A message that is about to be stored, or was. */
interface TakenMessage {
  readonly seq: string;
  readonly message: StoredMessage;
  readonly pieces: number;
  readonly release: (() => void) | undefined;
  readonly cuts?: number;
}

/** The queues of all chats in which something waits. */
export class Chats {
  readonly #deps: TurnDependencies;
  readonly #state: ChannelState;
  readonly #queues = new Map<string, ChatQueue>();
  readonly #stopping = new AbortController();
  #isStarted = false;

  constructor(deps: TurnDependencies) {
    this.#deps = deps;
    this.#state = deps.state;
  }

  get size(): number {
    return this.#queues.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** How many messages of a lane wait. */
  sizeOf(lane: string): number {
    return this.#queues.get(lane)?.size ?? 0;
  }

  /**
   * Reads what earlier lives left. A crash may have cut the first message of each chat.
   * @param onSeq receives the number of each.
   */
  async load(budget: WaitingBudget, onSeq: (seq: string) => void): Promise<void> {
    const wasStopped = (await this.#state.get(KEYS.stopped)) !== undefined;
    const cuts = new Map<string, number>();
    for await (const { key, value } of this.#state.all<number>(KEYS.cuts)) cuts.set(key, value);
    const changed: Record<string, unknown> = wasStopped ? { [KEYS.stopped]: undefined } : {};
    const lanes = new Set<string>();
    for await (const { key: seq, value: message, pieces, size } of this.#state.all<StoredMessage>(KEYS.messages)) {
      onSeq(seq);
      const wasCut = !wasStopped && !lanes.has(laneOf(message));
      lanes.add(laneOf(message));
      const count = (cuts.get(seq) ?? 0) + (wasCut ? 1 : 0);
      if (wasCut) changed[KEYS.cut(seq)] = count;
      this.add({ seq, message, pieces, release: budget.take(message.chat, size), cuts: count });
    }
    if (Object.keys(changed).length > 0) await this.#state.store(changed);
  }

  /** Begins to work. Nothing runs before. */
  start(): void {
    this.#isStarted = true;
    for (const queue of this.#queues.values()) queue.start();
  }

  add({ seq, message, pieces, release, cuts = 0 }: TakenMessage): void {
    const lane = laneOf(message);
    const queue = this.#queues.get(lane) ?? this.#begin(lane);
    const { reply, stops, press, text } = message;
    const queued: QueuedMessage = {
      seq,
      reply,
      lane,
      isStop: press === undefined && stops === undefined && commandOf(text)?.word === 'stop',
      stops,
      removal: { ...this.#state.removal(KEYS.message(seq), pieces), ...(cuts > 0 && { [KEYS.cut(seq)]: undefined }) },
      release,
      cuts,
      hasBegun: cuts > 0,
      attempts: 0,
      failingSince: undefined,
    };
    queue.add(queued);
    if (this.#isStarted) queue.start();
  }

  /** No further message begins. Those that run go on. */
  close(): void {
    this.#stopping.abort();
  }

  /**
   * Waits for the turns that run, until the signal aborts; then it ends them.
   * @returns how many were cut. Their messages run after the next start.
   */
  async stop(signal: AbortSignal): Promise<number> {
    this.close();
    let cut = 0;
    const onAbort = () => {
      for (const queue of this.#queues.values()) if (queue.cut()) cut += 1;
    };
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    await Promise.all(this.#queues.values().map((queue) => queue.settled()));
    signal.removeEventListener('abort', onAbort);
    return cut;
  }

  #begin(lane: string): ChatQueue {
    const queue: ChatQueue = new ChatQueue(this.#deps, lane, this.#stopping.signal, () => {
      if (this.#queues.get(lane) === queue) this.#queues.delete(lane);
    });
    this.#queues.set(lane, queue);
    return queue;
  }
}
