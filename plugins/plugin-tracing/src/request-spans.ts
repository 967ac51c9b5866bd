import { type Attributes, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { Logger } from '@plugboard/kernel';
import type { OpenSpan, OpenSpans } from './open-spans.js';
import { callerOf } from './trace-context.js';
import { type Watcher, watchChannel } from './watch-channel.js';

/** Requests whose spans can be parents after they have ended: turns wait, and sockets stay open. */
const MAX_CONTEXTS = 10_000;
/** Characters of a value from the request. */
const MAX_VALUE = 512;
/** Methods of the conventions. Node.js accepts more. */
const METHODS: ReadonlySet<string> = new Set('CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE'.split(' '));

/** What `plugboard.http` publishes. */
interface PublishedRequest {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** The path of the route. Undefined if there is none. */
  readonly route?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Fields of the request's line in the log. */
  readonly logFields: Record<string, unknown>;
  /** At the end, if there was a reply. */
  readonly status?: number | undefined;
  /** At the end: `ok`, or why not. */
  readonly outcome?: string;
  readonly project?: string | undefined;
}

/** The spans of HTTP requests. An upgrade ends when the socket is open. */
export class RequestSpans {
  readonly #spans: OpenSpans;
  readonly #open = new WeakMap<object, OpenSpan>();
  /** By request id, the least recently used first. */
  readonly #contexts = new Map<string, SpanContext>();

  constructor(spans: OpenSpans) {
    this.#spans = spans;
  }

  watch(log: Logger): () => void {
    const watcher: Watcher<PublishedRequest> = {
      start: (request) => this.#start(request),
      end: (request) => this.#open.get(request)?.end(endAttributes(request), errorOf(request)),
    };
    return watchChannel('plugboard.http', watcher, log);
  }

  /** The span of a request, also after it has ended. */
  contextOf(requestId: string): SpanContext | undefined {
    const context = this.#contexts.get(requestId);
    if (context) this.#keep(requestId, context);
    return context;
  }

  #start(request: PublishedRequest): void {
    const { requestId, path, headers, logFields } = request;
    const span = this.#spans.start(nameOf(request), {
      kind: SpanKind.SERVER,
      parent: callerOf(headers),
      attributes: {
        'http.request.method': methodOf(request),
        'url.path': path.slice(0, MAX_VALUE),
        'user_agent.original': String(headers['user-agent'] ?? '').slice(0, MAX_VALUE) || undefined,
        'plugboard.request.id': requestId,
      },
    });
    const { context } = span;
    logFields.trace_id = context.traceId;
    logFields.span_id = context.spanId;
    this.#open.set(request, span);
    this.#keep(requestId, context);
  }

  #keep(requestId: string, context: SpanContext): void {
    this.#contexts.delete(requestId);
    this.#contexts.set(requestId, context);
    const [oldest] = this.#contexts.keys();
    if (this.#contexts.size > MAX_CONTEXTS && oldest !== undefined) this.#contexts.delete(oldest);
  }
}

function methodOf({ method }: PublishedRequest): string {
  return METHODS.has(method) ? method : '_OTHER';
}

function nameOf(request: PublishedRequest): string {
  const method = METHODS.has(request.method) ? request.method : 'HTTP';
  return request.route === undefined ? method : `${method} ${request.route}`;
}

function endAttributes({ route, status, project }: PublishedRequest): Attributes {
  return { 'http.route': route, 'http.response.status_code': status, 'plugboard.project': project };
}

/** An error of the caller is not an error of the server. */
function errorOf({ status = 0, outcome = 'ok' }: PublishedRequest): string | undefined {
  if (status >= 500) return String(status);
  return outcome === 'ok' || outcome === 'client_error' || status === 408 ? undefined : outcome;
}
