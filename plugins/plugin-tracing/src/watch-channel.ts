import { tracingChannel } from 'node:diagnostics_channel';
import type { Logger } from '@plugboard/kernel';

/** What is called at the start of an operation, and with the same object at its end. */
export interface Watcher<T> {
  start(context: T): void;
  /** The object has more fields, and an `error` if the operation failed. */
  end(context: T): void;
}

/**
 * Watches the operations of a tracing channel. Returns what unsubscribes.
 *
 * A subscriber runs within the turn or the request, and its error would end the server: it is
 * logged, and costs a span.
 */
export function watchChannel<T>(name: string, watcher: Watcher<T>, log: Logger): () => void {
  const guarded = (method: 'start' | 'end') => (context: object) => {
    try {
      watcher[method](context as T);
    } catch (err) {
      log.error({ err, channel: name }, 'a span is missing or incomplete: the tracing plugin has a defect');
    }
  };
  const channel = tracingChannel<unknown, object>(name);
  const subscribers = {
    start: guarded('start'),
    asyncEnd: guarded('end'),
    // A tracing channel requires all five. An error is in what `asyncEnd` gets, too.
    end: () => {},
    asyncStart: () => {},
    error: () => {},
  };
  channel.subscribe(subscribers);
  return () => channel.unsubscribe(subscribers);
}
