import { MOST_LANES } from '@plugboard/open-responses';
import { HttpError, retryAfterHeaders } from '@plugboard/transport-http';

/** Responses of one connection that run or wait. */
const MOST_IN_FLIGHT = 8;

/** Runs the responses of a connection: those of one lane one after the other, lanes side by side. */
export class Lanes {
  readonly #last = new Map<string, Promise<void>>();
  readonly #names = new Set<string>();
  #inFlight = 0;

  get inFlight(): number {
    return this.#inFlight;
  }

  /**
   * Runs the work when the earlier work of the lane has ended.
   *
   * @param work must not reject.
   * @throws HttpError 429 if the connection has too many lanes, or too much in flight.
   */
  run(lane: string, work: () => Promise<void>, onIdle: () => void): void {
    if (!this.#names.has(lane) && this.#names.size >= MOST_LANES) {
      throw limited(
        'websocket_stream_limit_reached',
        `This connection has used ${MOST_LANES} values of stream_id, and may use no more.`,
      );
    }
    if (this.#inFlight >= MOST_IN_FLIGHT) {
      throw limited(
        'concurrency_limit_exceeded',
        `This connection has ${MOST_IN_FLIGHT} responses that run or wait; wait for one of them to end.`,
      );
    }
    this.#names.add(lane);
    this.#inFlight++;
    const done = (this.#last.get(lane) ?? Promise.resolve()).then(work).finally(() => {
      this.#inFlight--;
      if (this.#last.get(lane) === done) this.#last.delete(lane);
      if (this.#inFlight === 0) onIdle();
    });
    this.#last.set(lane, done);
  }
}

export function limited(code: string, message: string): HttpError {
  return new HttpError(429, message, {
    code,
    headers: retryAfterHeaders(1_000),
    body: { error: { message, type: 'requests', param: null, code } },
  });
}
