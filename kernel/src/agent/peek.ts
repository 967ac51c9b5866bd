import type { Clock } from '../host/ambient.js';
import type { AgentEvent, AgentEvents, Failure } from './event.js';

/** How a turn begins, as far as a head must know it. */
export interface Peeked {
  /** Why there is no answer, where that is known before anything was to be shown. */
  readonly failure: Failure | undefined;
  /** The connection that answers, where that is known by now. */
  readonly connection: string | undefined;
  /** All events, those that were looked at included. To be read once. */
  readonly events: AgentEvents;
}

/**
 * Waits for the first event that an encoder would write, so that a turn that fails before it can still be answered with a status.
 *
 * @param shows whether the encoder would write something for the event.
 * @param patience milliseconds after which the head is to be sent in any case.
 */
export async function peek(
  events: AgentEvents,
  shows: (event: AgentEvent) => boolean,
  patience: number,
  clock: Clock,
): Promise<Peeked> {
  const iterator = events[Symbol.asyncIterator]();
  const seen: (readonly AgentEvent[])[] = [];
  let pending: Promise<IteratorResult<readonly AgentEvent[]>> | undefined;
  let connection: string | undefined;
  let failure: Failure | undefined;

  let impatient: () => void = () => {};
  const late = new Promise<'late'>((resolve) => {
    impatient = () => resolve('late');
  });
  const timer = clock.after(Math.max(0, patience), impatient);
  try {
    look: for (;;) {
      pending ??= iterator.next();
      const next = await Promise.race([pending, late]);
      if (next === 'late') break;
      pending = undefined;
      if (next.done) break;
      seen.push(next.value);
      for (const event of next.value) {
        if (event.type === 'step') connection = event.connection;
        if (event.type === 'failed') failure = event.failure;
        if (event.type === 'failed' || event.type === 'finished' || shows(event)) break look;
      }
    }
  } finally {
    timer.cancel();
  }
  return { failure, connection, events: replay(seen, pending, iterator) };
}

async function* replay(
  seen: readonly (readonly AgentEvent[])[],
  pending: Promise<IteratorResult<readonly AgentEvent[]>> | undefined,
  iterator: AsyncIterator<readonly AgentEvent[]>,
): AsyncGenerator<readonly AgentEvent[]> {
  try {
    yield* seen;
    for (let next = await (pending ?? iterator.next()); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}
