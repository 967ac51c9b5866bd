import { Account, type Conversations, isTerminal, TurnError, type WatchedTurn } from '@plugboard/kernel/contracts';
import { ResponseEncoder } from '../events/response-encoder.js';
import { echoOf } from '../request/echo.js';
import { listedItems, turnInput } from '../request/input-items.js';
import { holdInput, releaseInput } from './watched-input.js';

export interface ConversationWatchOptions {
  /** Bytes that the watcher may be behind before its watch ends. */
  readonly maxBehind: number;
  /** The option with that limit. */
  readonly setting: string;
  /** In which what a turn says is reserved while it is shown: each watcher writes it anew. */
  readonly account: Account;
  /** Opens another account of the watcher, for what it shares with others. */
  openAccount(): Account;
  /** Whether the watcher receives the events of a response already. */
  isRead(id: string): boolean;
  /** Unix time, seconds. */
  now(): number;
}

/** A turn that is shown as a response. */
interface ShownTurn {
  readonly encoder: ResponseEncoder;
  /** What is reserved for it. */
  reserved: number;
}

/**
 * The turns of a session as responses, for one watcher. Their events come in one stream, and are
 * numbered from 0 for each response and watcher: their `stream_id` is the id of the response. A
 * turn that runs already begins with what it has said so far, in few events.
 */
export class ConversationWatch {
  readonly conversation: string;
  /** The ids of the responses that ran or waited when the watch began. */
  readonly responses: readonly string[];
  /** The number of stored turns at that time. */
  readonly turns: number;
  readonly #watch: Awaited<ReturnType<Conversations['watch']>>;
  readonly #options: ConversationWatchOptions;
  /** Those that are shown. */
  readonly #running = new Map<WatchedTurn, ShownTurn>();
  readonly #seen = new WeakSet<WatchedTurn>();
  #isClosed = false;

  constructor(conversation: string, watch: Awaited<ReturnType<Conversations['watch']>>, options: ConversationWatchOptions) {
    this.conversation = conversation;
    this.responses = watch.turns.map(watchedId);
    this.turns = watch.stored;
    this.#watch = watch;
    this.#options = options;
  }

  /**
   * The events as they come. Ends when the watch is closed.
   *
   * @throws TurnError `overloaded` if the watcher is too far behind, or there is no memory for what
   *   a turn has said.
   */
  async *events(): AsyncGenerator<readonly string[]> {
    const { account, isRead } = this.#options;
    for await (const { turn, batch, size } of this.#watch.events) {
      const isNew = !this.#seen.has(turn);
      this.#seen.add(turn);
      if (isRead(watchedId(turn))) this.#hide(turn);
      else if (isNew) this.#running.set(turn, { encoder: this.#encoderOf(turn), reserved: 0 });
      const shown = this.#running.get(turn);
      if (!shown) continue;
      const cost = Account.costOf(size);
      account.require(cost);
      shown.reserved += cost;
      const { encoder } = shown;
      if (isNew) yield* this.#begin(turn, encoder);
      const isLast = batch.some(isTerminal);
      if (isLast) this.#running.delete(turn);
      // Arguments of a client's call come whole: a watcher that came late lacks their beginning.
      const whole = batch.filter(({ type }) => type !== 'tool-call-delta');
      yield encoder.write(whole, turn);
      if (isLast) account.release(shown.reserved);
    }
    if (!this.#isClosed) throw this.#behind();
  }

  /** The responses that are shown and have not ended. */
  get running(): number {
    return this.#running.size;
  }

  /** The turn that a response shows, until it has ended. */
  turnOf(id: string): WatchedTurn | undefined {
    return [...this.#running.keys()].find((turn) => watchedId(turn) === id);
  }

  close(): void {
    this.#isClosed = true;
    this.#watch.events.return();
  }

  #encoderOf(turn: WatchedTurn): ResponseEncoder {
    const { target, createdAt } = turn;
    const { conversation } = this;
    const id = watchedId(turn);
    const echo = echoOf({}, { previous: undefined, conversation, stored: false });
    return new ResponseEncoder(
      { id, createdAt: Math.floor(createdAt / 1000), model: target.name, agent: target.name, echo },
      {
        visibility: target.toolVisibility,
        showsReasoning: target.toolVisibility === 'full',
        extensions: true,
        streamId: id,
        conversation,
        now: this.#options.now,
      },
    );
  }

  /** That the response exists, and what was asked: the same event for all watchers. */
  *#begin(turn: WatchedTurn, encoder: ResponseEncoder): Generator<readonly string[]> {
    const { isWaiting, ahead } = turn;
    yield encoder.begin(isWaiting ? 'queued' : 'in_progress', { ahead });
    const items = () => listedItems(turnInput(turn), encoder.id);
    const event = encoder.input(items, (render) => holdInput(turn, render, () => this.#options.openAccount()));
    try {
      yield [event];
    } finally {
      releaseInput(turn);
    }
  }

  /** The turn is no longer shown: what was reserved for it is free. */
  #hide(turn: WatchedTurn): void {
    this.#options.account.release(this.#running.get(turn)?.reserved ?? 0);
    this.#running.delete(turn);
  }

  #behind(): TurnError {
    const { maxBehind, setting } = this.#options;
    const what = `The watch of '${this.conversation}' was more than ${maxBehind} bytes behind (\`${setting}\`) and has ended.`;
    return new TurnError('overloaded', `${what} Watch it again.`, { retryAfter: 1 });
  }
}

/** The id of the response that shows a turn: its own, or that of the response that began it. */
function watchedId({ id }: WatchedTurn): string {
  return `resp_${id}`;
}
