import type { AgentEvent, Clock } from '@plugboard/kernel';
import type { AgentEvents, Failure } from '@plugboard/kernel/contracts';

type Batch = readonly AgentEvent[];

/** The beginning of a turn: what is known before the response head is written. */
interface PeekResult {
  /** The failure, if the turn failed before the first visible event. */
  readonly failure: Failure | undefined;
  /** Whether an event has arrived. Until then the turn waits in the queue. */
  readonly started: boolean;
  /** The model connection that answers, if known. */
  readonly connection: string | undefined;
  /** All events, including those already read. Can be iterated once. */
  readonly events: AgentEvents;
}

/**
 * Waits for the first event that an encoder would write. A turn that fails before it can still be
 * answered with an error status.
 *
 * @param isVisible whether the encoder writes anything for the event.
 * @param timeout milliseconds after which the head is sent in any case.
 */
export async function peek(
  events: AgentEvents,
  isVisible: (event: AgentEvent) => boolean,
  timeout: number,
  clock: Clock,
): Promise<PeekResult> {
  const iterator = events[Symbol.asyncIterator]();
  const seen: Batch[] = [];
  let pending: Promise<IteratorResult<Batch>> | undefined;
  let connection: string | undefined;
  let failure: Failure | undefined;

  let isLate = false;
  let stopWaiting = () => {};
  const timer = clock.after(Math.max(0, timeout), () => {
    isLate = true;
    stopWaiting();
  });
  try {
    read: while (!isLate) {
      const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Batch> | undefined>();
      stopWaiting = () => resolve(undefined);
      pending = iterator.next();
      pending.then(resolve, reject); // cheaper than `Promise.race`
      const next = await promise;
      if (next === undefined) break;
      pending = undefined;
      if (next.done) break;
      seen.push(next.value);
      for (const event of next.value) {
        if (event.type === 'step') connection = event.connection;
        if (event.type === 'failed') failure = event.failure;
        if (event.type === 'failed' || event.type === 'finished' || isVisible(event)) break read;
      }
    }
  } finally {
    timer.cancel();
  }
  return { failure, started: seen.length > 0, connection, events: new PeekedEvents(seen, pending, iterator) };
}

/** The events already read, then the rest. Not a generator: every batch of a stream passes here. */
class PeekedEvents implements AsyncIterableIterator<Batch> {
  readonly #seen: Batch[];
  #pending: Promise<IteratorResult<Batch>> | undefined;
  readonly #rest: AsyncIterator<Batch>;

  /** @param pending a result that was requested and has not arrived. */
  constructor(seen: Batch[], pending: Promise<IteratorResult<Batch>> | undefined, rest: AsyncIterator<Batch>) {
    this.#seen = seen;
    this.#pending = pending;
    this.#rest = rest;
  }

  next(): Promise<IteratorResult<Batch>> {
    const batch = this.#seen.shift();
    if (batch !== undefined) return Promise.resolve({ value: batch, done: false });
    const next = this.#pending ?? this.#rest.next();
    this.#pending = undefined;
    return next;
  }

  async return(): Promise<IteratorResult<Batch>> {
    this.#seen.length = 0;
    await this.#rest.return?.();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
