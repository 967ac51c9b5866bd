import { defineExtensionPoint, type Principal, type Scope } from '@plugboard/kernel';

/**
 * A route: a plain function from a request to a reply. It never sees the web framework, and is tested without a server.
 *
 * 1. transport-http checks Host, Origin, limits and credentials, and only then reads the body.
 * 2. It calls `handle`. What is thrown becomes the protocol's JSON error: an `HttpError` as it says, anything else a 500 that tells nothing.
 * 3. The reply is written. `request.signal` is aborted when the caller goes away before its end.
 */
export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** A path of @koa/router 15, for example `/v1/models{/*id}`. HEAD comes with GET, OPTIONS with everything. */
  readonly path: string;
  /** If the route is a page for people: the label under which the start banner shows its address. */
  readonly link?: string;
  /**
   * Who may call: whoever has a credential with all of these scopes, for example `['chat']`; others get 403 before the body is read, and the
   * audit log a line. `public` is for probes, which anybody may call, under any Host; under `/v1` they too want a credential, as everything there.
   */
  readonly access: 'public' | readonly Scope[];
  /**
   * What may come with the request. `json`: the content type must be `application/json`, and `body` is the parsed value. `none`:
   * a body is not read.
   */
  readonly body: 'json' | 'none';
  /** Whether it starts work that a server about to stop must refuse: answered with 503 then. */
  readonly startsWork: boolean;
  handle(request: HttpRequest): Promise<HttpReply> | HttpReply;
}

export const HttpRoutes = defineExtensionPoint<HttpRoute>('transport-http.routes', {
  discipline: 'in-order',
  describe: ({ method, path, link }) => [
    { kind: 'route', label: method, text: path },
    ...(link === undefined ? [] : [{ kind: 'link', label: link, text: path }]),
  ],
});

export interface HttpRequest {
  readonly method: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** The path's parameters, decoded once. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Names in lower case, as Node gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Name, value, name, value … as they came, to tell a header that came twice. */
  readonly rawHeaders: readonly string[];
  /** The body's text, for a route with `body: 'json'`; empty otherwise. */
  readonly rawBody: string;
  /** The parsed body, for a route with `body: 'json'`. */
  readonly body: unknown;
  readonly principal: Principal;
  /** `req_` and 32 hexadecimal digits, sent back as `x-request-id`. */
  readonly requestId: string;
  /** When the request was accepted, on the clock's monotonic scale. */
  readonly acceptedAt: number;
  /**
   * Aborted when the caller has gone before its reply was whole; and when a server that stops can wait no longer, with a
   * `TurnError` as its reason: then an answer is still wanted.
   */
  readonly signal: AbortSignal;
  /** Facts for this request's line in the access log, for example `agent`, `steps`. */
  note(facts: Readonly<Record<string, string | number | boolean | undefined>>): void;
}

export interface HttpReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * An object is sent as JSON, a string as it stands with the content type that the headers say. An iterable is streamed: each
   * item goes out in one write, and is pulled only when the caller's socket has room. Where it throws, the socket is destroyed:
   * a stream never ends cleanly that did not end well.
   */
  readonly body?: object | string | AsyncIterable<string>;
  /**
   * For a streamed body: what is written when nothing else was for a while, so that nobody in between takes the connection for
   * dead.
   */
  readonly keepAlive?: { readonly every: number; readonly text: string };
}
