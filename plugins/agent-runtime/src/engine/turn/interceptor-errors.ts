import type { Contribution, Interceptor } from '@plugboard/kernel';
import type { AgentEvents } from '@plugboard/kernel/contracts';

type Interceptors = readonly Contribution<Interceptor>[];

/**
 * Returns what an interceptor returned, if that can be read as events.
 * @throws Error that names the interceptor and the mistake.
 */
export function eventsOf(entry: string, returned: unknown): AgentEvents {
  if (isIterable(returned)) return returned as AgentEvents;
  // The turn fails anyway. A rejection without a handler would also end the process.
  if (returned instanceof Promise) returned.catch(() => {});
  const found = returned instanceof Promise ? 'a Promise' : typeOf(returned);
  throw new Error(`${entry}: the interceptor returned ${found}, not events; write async function*, or return next(turn)`);
}

/**
 * @throws Error that names the interceptors if they yielded something that is not a batch of
 * events.
 */
export function assertBatch(interceptors: Interceptors, batch: unknown): void {
  if (!Array.isArray(batch))
    throw new Error(`${culprit(interceptors)} yielded ${typeOf(batch)}, not an array of events; write yield [event]`);
}

/**
 * Makes the error for events that ended without a terminal event. The agent loop always writes one.
 */
export function endedEarly(interceptors: Interceptors): Error {
  return new Error(`${culprit(interceptors)} ended without \`finished\` or \`failed\`; pass on the last event of next(turn)`);
}

/** Names the interceptor, or all of several: what they pass to each other is not observed. */
function culprit(interceptors: Interceptors): string {
  const entries = interceptors.map(({ entry }) => entry);
  return entries.length === 1 ? `${entries[0]}: the interceptor` : `${entries.join(', ')}: one of these interceptors`;
}

/** Whether `for await` can read it as batches. */
function isIterable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value);
}

function typeOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
