import { MOST_LANES } from '@plugboard/open-responses';
import { limited } from '../messages/refusals.js';

/** Responses of one connection that run, wait, or are being resumed. */
const MOST_IN_FLIGHT = 8;

/**
 * Limits and orders the work of one connection. Responses of one lane run one after the other,
 * lanes side by side.
 */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>();
  readonly #names = new Set<string>();
  readonly #onIdle: () => void;
  #inFlight = 0;

  /** @param onIdle called when the last piece of work has ended. */
  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Runs the work when the earlier work of the lane has ended.
   *
   * @param work must not reject.
   * @throws HttpError 429 if the connection has too many lanes, or too much in flight.
   */
  run(lane: string, work: () => Promise<void>): void {
    if (!this.#names.has(lane) && this.#names.size >= MOST_LANES) {
      throw limited('websocket_stream_limit_reached', `This connection has used ${MOST_LANES} values of stream_id, the maximum.`);
    }
    this.#assertRoom();
    this.#names.add(lane);
    const done = this.#count(() => (this.#last.get(lane) ?? Promise.resolve()).then(work)).finally(() => {
      if (this.#last.get(lane) === done) this.#last.delete(lane);
    });
    this.#last.set(lane, done);
  }

  /**
   * Runs work that belongs to no lane at once.
   *
   * @param work must not reject.
   * @throws HttpError 429 if the connection has too much in flight.
   */
  runBeside(work: () => Promise<void>): void {
    this.#assertRoom();
    void this.#count(work);
  }

  #assertRoom(): void {
    if (this.#inFlight < MOST_IN_FLIGHT) return;
    const message = `This connection has ${MOST_IN_FLIGHT} responses in flight, the maximum. Wait for one of them to end.`;
    throw limited('concurrency_limit_exceeded', message);
  }

  async #count(work: () => Promise<void>): Promise<void> {
    this.#inFlight++;
    try {
      await work();
    } finally {
      this.#inFlight--;
      if (this.#inFlight === 0) this.#onIdle();
    }
  }
}
