import { MAX_STREAMS } from '@plugboard/open-responses';
import { limited } from '../messages/refusals.js';

/** Responses of one connection that run, wait, or are being resumed. */
const MAX_IN_FLIGHT = 8;

/** What orders a response among the others of its connection. */
interface ResponseOrder {
  /** The `stream_id` of the request; empty without one. */
  readonly stream: string;
  /** The conversation that the request names. */
  readonly conversation: string | undefined;
}

/**
 * Limits and orders the responses of one connection.
 *
 * 1. Responses of one stream run one after the other, streams side by side.
 * 2. Requests that name the same conversation reach it in the order in which they arrived, whatever
 *    their streams.
 */
export class ResponseStreams {
  /** The end of the last response of each stream. */
  readonly #ends = new Map<string, Promise<void>>();
  /** The start of the last response in each conversation. */
  readonly #starts = new Map<string, Promise<void>>();
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
   * Runs a response when it is its turn.
   *
   * @param work must not reject. It calls `started` when the conversation has received the request.
   * @throws HttpError 429 if the connection has too many streams, or too much in flight.
   */
  run({ stream, conversation }: ResponseOrder, work: (started: () => void) => Promise<void>): void {
    if (!this.#names.has(stream) && this.#names.size >= MAX_STREAMS) {
      throw limited(
        'websocket_stream_limit_reached',
        `This connection has used ${MAX_STREAMS} values of stream_id, the maximum.`,
      );
    }
    this.#assertCapacity();
    this.#names.add(stream);
    const { promise: started, resolve: start } = Promise.withResolvers<void>();
    const earlier = [this.#ends.get(stream), conversation !== undefined && this.#starts.get(conversation)];
    const ended = this.#count(async () => {
      await Promise.all(earlier);
      await work(start).finally(start);
    });
    remember(this.#ends, stream, ended);
    if (conversation !== undefined) remember(this.#starts, conversation, started);
  }

  /**
   * Runs work that belongs to no stream at once.
   *
   * @param work must not reject.
   * @throws HttpError 429 if the connection has too much in flight.
   */
  runBeside(work: () => Promise<void>): void {
    this.#assertCapacity();
    void this.#count(work);
  }

  #assertCapacity(): void {
    if (this.#inFlight < MAX_IN_FLIGHT) return;
    const message = `This connection has ${MAX_IN_FLIGHT} responses in flight, the maximum. Wait for one of them to end.`;
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

/** Keeps a promise as the last one under a name until it has settled. */
function remember(last: Map<string, Promise<void>>, name: string, promise: Promise<void>): void {
  last.set(name, promise);
  void promise.then(() => {
    if (last.get(name) === promise) last.delete(name);
  });
}
