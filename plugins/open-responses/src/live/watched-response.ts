import type { AgentEvent } from '@plugboard/kernel';
import type { WatchedTurn } from '@plugboard/kernel/contracts';
import { outcomeOfFailure, outcomeOfFinish } from '../events/outcome.js';
import { ResponseEncoder } from '../events/response-encoder.js';
import { echoOf } from '../request/echo.js';
import { listedItems } from '../request/input-items.js';
import { turnInput } from '../request/turn-input.js';

/**
 * A turn of a watched conversation as a response, for one watcher. Its id is that of its response,
 * or one of its own if no response began it.
 */
export class WatchedResponse {
  readonly id: string;
  readonly #turn: WatchedTurn;
  readonly #conversation: string;
  readonly #encoder: ResponseEncoder;
  #isQueued: boolean;
  #number: number | undefined;

  constructor(turn: WatchedTurn, conversation: string) {
    const { target, createdAt } = turn;
    this.id = watchedId(turn);
    this.#turn = turn;
    this.#conversation = conversation;
    this.#isQueued = turn.isWaiting;
    const echo = echoOf({}, { previous: undefined, conversation, stored: false });
    this.#encoder = new ResponseEncoder(
      { id: this.id, createdAt: Math.floor(createdAt / 1000), model: target.name, agent: target.name, echo },
      {
        visibility: target.toolVisibility,
        showsReasoning: target.toolVisibility === 'full',
        extensions: true,
        streamId: this.id,
      },
    );
  }

  /** The first events, before what was asked: that it exists. */
  begin(): readonly string[] {
    return this.#encoder.begin(this.#isQueued ? 'queued' : 'in_progress');
  }

  /**
   * What was asked, which all watchers are sent as the same event.
   *
   * @param hold returns the event, which it may have rendered before.
   */
  input(hold: (render: () => string) => string): string {
    let isRendered = false;
    const event = hold(() => {
      isRendered = true;
      return this.#encoder.input(listedItems(turnInput(this.#turn), this.id));
    });
    if (!isRendered) this.#encoder.skip();
    return event;
  }

  /** How many turns are ahead of it, if it waits. */
  position(): readonly string[] {
    return this.#isQueued ? [this.#encoder.queuePosition(this.#turn.ahead)] : [];
  }

  /** @param now Unix time, seconds. */
  write(batch: readonly AgentEvent[], now: number): readonly string[] {
    const encoder = this.#encoder;
    const [first] = batch;
    const last = batch.at(-1);
    const events: string[] = first?.type === 'started' ? this.#start(first.turn) : [];
    // The arguments of a client's call come whole: a watcher that came late lacks their beginning.
    events.push(...encoder.write(batch.filter(({ type }) => type !== 'tool-call-delta')));
    const { record } = this.#turn;
    const progress = record && encoder.progress(batch, this.#number, record);
    if (progress !== undefined) events.push(progress);
    if (last?.type !== 'finished' && last?.type !== 'failed') return events;
    const outcome = last.type === 'finished' ? outcomeOfFinish(last) : outcomeOfFailure(last.failure, encoder.usage);
    events.push(...encoder.close(outcome));
    if (this.#number !== undefined) events.push(encoder.sessionState(this.#conversation, 'idle', this.#number));
    events.push(encoder.terminal(outcome, encoder.response(outcome, now)));
    return events;
  }

  /** Ends its turn for all its readers. */
  cancel(): void {
    void this.#turn.cancel();
  }

  #start(number: number | undefined): string[] {
    const events = this.#isQueued ? [this.#encoder.start()] : [];
    this.#isQueued = false;
    this.#number = number;
    if (number !== undefined) events.push(this.#encoder.sessionState(this.#conversation, 'running', number));
    return events;
  }
}

/** The id of the response that shows a turn. */
export function watchedId({ id }: WatchedTurn): string {
  return `resp_${id}`;
}
