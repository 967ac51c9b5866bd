import { tracingChannel } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * The tracing channel `plugboard.http` of `node:diagnostics_channel`. It costs nothing without
 * subscribers. Each request publishes its context to `start`, and the same object to `asyncEnd`
 * when its reply has been sent or its connection is closed; an upgrade when it is accepted.
 *
 * - At the start `{ requestId, method, path, route, headers, logFields }`. `route` is the path of
 *   the route, undefined without one. Subscribers may add to `logFields`: they are in the request's
 *   log line.
 * - At the end `status`, undefined if no reply was sent, `outcome` as in the log line, `project`.
 */
const { start, asyncEnd } = tracingChannel<unknown, HttpStart & Partial<HttpEnd>>('plugboard.http');

interface HttpStart {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly route: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly logFields: Record<string, string | number | boolean | undefined>;
}

interface HttpEnd {
  readonly status: number | undefined;
  readonly outcome: string;
  readonly project: string | undefined;
}

/** Whether the channel has subscribers. */
export function isHttpWatched(): boolean {
  return start.hasSubscribers || asyncEnd.hasSubscribers;
}

/** One published request. */
export class HttpOperation {
  readonly #context: HttpStart;
  #hasEnded = false;

  constructor(context: HttpStart) {
    this.#context = context;
    start.publish(context);
  }

  /** Only the first call counts. */
  end(fields: HttpEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    asyncEnd.publish(Object.assign(this.#context, fields));
  }
}
