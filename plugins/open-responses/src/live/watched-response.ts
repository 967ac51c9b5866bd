import type { AgentEvent } from '@plugboard/kernel';
import type { WatchedTurn } from '@plugboard/kernel/contracts';
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
  readonly #encoder: ResponseEncoder;

  /** @param now returns Unix time, seconds. */
  constructor(turn: WatchedTurn, conversation: string, now: () => number) {
    const { target, createdAt } = turn;
    this.id = watchedId(turn);
    this.#turn = turn;
    const echo = echoOf({}, { previous: undefined, conversation, stored: false });
    this.#encoder = new ResponseEncoder(
      { id: this.id, createdAt: Math.floor(createdAt / 1000), model: target.name, agent: target.name, echo },
      {
        visibility: target.toolVisibility,
        showsReasoning: target.toolVisibility === 'full',
        extensions: true,
        streamId: this.id,
        conversation,
        now,
      },
    );
  }

  /** The first events, before what was asked: that it exists. */
  begin(): readonly string[] {
    return this.#encoder.begin(this.#turn.isWaiting ? 'queued' : 'in_progress');
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
    return this.#turn.isWaiting ? [this.#encoder.queuePosition(this.#turn.ahead)] : [];
  }

  write(batch: readonly AgentEvent[]): readonly string[] {
    // The arguments of a client's call come whole: a watcher that came late lacks their beginning.
    const whole = batch.filter(({ type }) => type !== 'tool-call-delta');
    return this.#encoder.write(whole, { turn: this.#turn });
  }

  /** Ends its turn for all its readers. */
  cancel(): void {
    void this.#turn.cancel();
  }
}

/** The id of the response that shows a turn. */
export function watchedId({ id }: WatchedTurn): string {
  return `resp_${id}`;
}
