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
 * - `plugboard.tool.abandoned`: `{ turn, id, entry, tool }`, once for a tool that was told to end, and had not five seconds later. Its call ended on
 *   `plugboard.tool` when it was told.
 */
export const moments = {
  toolAbandoned: channel('plugboard.tool.abandoned'),
} as const;

type Operation = keyof typeof channels;

/** One operation that is listened to. */
export interface Span {
  /** More is known: it is added to the context. */
  tell(facts: object): void;
  end(): void;
  fail(error: unknown): void;
}

const UNHEARD: Span = { tell() {}, end() {}, fail() {} };

/** @param context makes what listeners are given; not called where there are none. */
export function begin(operation: Operation, context: () => object): Span {
  const channel = channels[operation];
  const { start, asyncEnd, error: errors } = channel as unknown as Record<'start' | 'asyncEnd' | 'error', Channel>;
  if (!start.hasSubscribers && !asyncEnd.hasSubscribers && !errors.hasSubscribers) return UNHEARD;
  const told: Record<string, unknown> = { ...context() };
  start.publish(told);
  return {
    tell: (facts) => Object.assign(told, facts),
    end: () => asyncEnd.publish(told),
    fail: (error) => {
      told.error = error;
      errors.publish(told);
      asyncEnd.publish(told);
    },
  };
}
