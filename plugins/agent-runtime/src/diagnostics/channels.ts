import { type Channel, channel, tracingChannel } from 'node:diagnostics_channel';

/**
 * What happens inside, for whoever listens (`node:diagnostics_channel`); it costs nothing while nobody does. Each operation publishes its
 * context to `start`, and the same object again to `asyncEnd`, or to `error` and then `asyncEnd`.
 *
 * - `plugboard.turn`: `{ turn }`; at the end `status`, `usage`.
 * - `plugboard.step`: `{ turn, step, connections, request }`; `request.headers` may be added to. At the end `connection`, `usage`.
 * - `plugboard.tool`: `{ turn, id, entry, tool, headers }`; `headers` may be added to. At the end `isError`.
 * - `plugboard.summary`: `{ session, connections, headers }`, where a model summarizes the oldest turns of a session; `headers` may be added to. At the end
 *   `connection`, `usage`.
 * - `plugboard.store`: `{ operation, session }`.
 */
export const channels = {
  turn: tracingChannel('plugboard.turn'),
  step: tracingChannel('plugboard.step'),
  tool: tracingChannel('plugboard.tool'),
  summary: tracingChannel('plugboard.summary'),
  store: tracingChannel('plugboard.store'),
} as const;

/**
 * What happens at one moment, for the same listeners.
 *
 * - `plugboard.tool.abandoned`: `{ turn, id, entry, tool }`, once for a tool that was published to end, and had not five seconds later. Its call ended on
 *   `plugboard.tool` when it was published.
 */
export const notices = {
  toolAbandoned: channel('plugboard.tool.abandoned'),
} as const;

type Operation = keyof typeof channels;

/** One operation that is listened to. */
export interface Span {
  /** More is known: it is added to the context. */
  set(fields: object): void;
  end(): void;
  fail(error: unknown): void;
}

const NO_SPAN: Span = { set() {}, end() {}, fail() {} };

/** @param context makes what listeners are given; not called where there are none. */
export function startSpan(operation: Operation, context: () => object): Span {
  const channel = channels[operation];
  const { start, asyncEnd, error: errors } = channel as unknown as Record<'start' | 'asyncEnd' | 'error', Channel>;
  if (!start.hasSubscribers && !asyncEnd.hasSubscribers && !errors.hasSubscribers) return NO_SPAN;
  const published: Record<string, unknown> = { ...context() };
  start.publish(published);
  return {
    set: (fields) => Object.assign(published, fields),
    end: () => asyncEnd.publish(published),
    fail: (error) => {
      published.error = error;
      errors.publish(published);
      asyncEnd.publish(published);
    },
  };
}
