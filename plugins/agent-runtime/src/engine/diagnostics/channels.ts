import { type Channel, channel, tracingChannel } from 'node:diagnostics_channel';

/**
 * Tracing channels of `node:diagnostics_channel`, for tracing and metrics plugins. They cost
 * nothing without subscribers. Each operation publishes its context to `start`, and the same object
 * to `asyncEnd` when it ends. If it fails, it is published to `error` first.
 *
 * - `plugboard.turn`: `{ request, turnId }`; at the end `status`, `usage`, and `record` unless the
 *   turn ended before it was admitted.
 * - `plugboard.step`: `{ turn, step, connections, headers }`. Subscribers may add to `headers`. At
 *   the end `connection`, `usage`, `reason`.
 * - `plugboard.tool`: `{ turn, id, name, arguments, entry, tool, headers }`: `name` is the tool's
 *   name at the model, `arguments` JSON text as the model wrote it. Subscribers may add to
 *   `headers`. At the end `isError` and `content`, unless the call waits for approval.
 * - `plugboard.summary`: `{ session, connections, headers }`, when a model summarizes the oldest
 *   turns of a session. Subscribers may add to `headers`. At the end `connection`, `usage`.
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
 * Channels of single events.
 *
 * - `plugboard.tool.abandoned`: `{ turn, id, entry, tool }`, when a tool still runs five seconds
 *   after it was aborted. Its call ended on `plugboard.tool` when it was aborted.
 * - `plugboard.blocked`: `{ conversation }`, published by the program at its start for each session
 *   whose work made the watchdog end an earlier process.
 */
export const eventChannels = {
  toolAbandoned: channel('plugboard.tool.abandoned'),
} as const;

type Operation = keyof typeof channels;

/** One published operation. */
export interface Span {
  /** Whether it has subscribers. */
  readonly isWatched: boolean;
  set(fields: object): void;
  end(): void;
  fail(error: unknown): void;
}

const NO_SPAN: Span = { isWatched: false, set() {}, end() {}, fail() {} };

/** @param context creates the context. Not called without subscribers. */
export function startSpan(operation: Operation, context: () => object): Span {
  const channel = channels[operation];
  const { start, asyncEnd, error: errors } = channel as unknown as Record<'start' | 'asyncEnd' | 'error', Channel>;
  if (!start.hasSubscribers && !asyncEnd.hasSubscribers && !errors.hasSubscribers) return NO_SPAN;
  const published: Record<string, unknown> = { ...context() };
  start.publish(published);
  return {
    isWatched: true,
    set: (fields) => Object.assign(published, fields),
    end: () => asyncEnd.publish(published),
    fail: (error) => {
      published.error = error;
      errors.publish(published);
      asyncEnd.publish(published);
    },
  };
}
