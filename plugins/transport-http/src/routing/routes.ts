import { defineExtensionPoint, type Principal } from '@plugboard/kernel';
import type { Account, Scope } from '@plugboard/kernel/contracts';
import type { ErrorFormatter } from '../errors/error-format.js';

/**
 * A route: a plain function from a request to a reply. It is independent of the web framework and
 * can be tested without a server.
 *
 * 1. transport-http checks Host, Origin, limits and credentials, then reads the body.
 * 2. It calls `handle`. A thrown `HttpError` is sent as it is; any other error becomes a generic
 *    500 and is logged.
 * 3. It writes the reply. `request.signal` is aborted if the caller disconnects before the end.
 * 4. Many requests are handled at the same time.
 */
export interface HttpRoute {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /**
   * A path of @koa/router 15, for example `/v1/models{/*id}`. HEAD is served with GET, OPTIONS with
   * every route. A path that is served for HEAD alone is unknown to other methods.
   */
  readonly path: string;
  /** Which requests for the path the route serves; others go to the next one. By default all. */
  when?(request: { readonly headers: HttpRequest['headers']; readonly query: URLSearchParams }): boolean;
  /** The label under which the start banner shows the address, if it is a page for people. */
  readonly link?: string;
  /**
   * Who may call. A list: callers whose credential has all of these scopes, for example
   * `['chat']`; `anyOf`: one of them; `orOpen`: all of them, or any caller of an open server.
   * Others get 403 before the body is read, and an audit event is logged. `public`: anyone, under
   * any Host; meant for probes. `page`: anyone, under an allowed Host; meant for files that a
   * browser loads. Under `/v1` all routes require a credential.
   */
  readonly access: Access;
  /**
   * A header, in lower case, that may hold the token in place of `Authorization`: for clients of
   * protocols that send it there. Two tokens that differ are refused.
   */
  readonly tokenHeader?: string;
  /**
   * `json`: requires `application/json`, and `request.body` is the parsed object. `bytes`: requires
   * a Content-Type, and `request.body` is a `Uint8Array`. `none`: the body is not read.
   */
  readonly body: 'json' | 'bytes' | 'none';
  /**
   * JSON Schema (2020-12 keywords) of a body of kind `json`. Bodies that do not match get 400 with
   * the first mistake, before `handle`. An invalid schema prevents the start.
   */
  readonly schema?: Readonly<Record<string, unknown>>;
  /**
   * Formats the errors that the server sends for the route, such as 401, as the route's own errors.
   * Without it, the format is that of the first route that has one. An error for a path without a
   * route has the format of the first route whose `when` recognizes the request, by its headers.
   */
  readonly formatError?: ErrorFormatter;
  /** Whether the route starts work. Such routes answer 503 while the server shuts down. */
  readonly startsWork: boolean;
  handle(request: HttpRequest): Promise<HttpReply> | HttpReply;
}

/** Who may call a route: see `HttpRoute.access`. */
export type Access =
  | 'public'
  | 'page'
  | readonly Scope[]
  | { readonly anyOf: readonly Scope[] }
  | { readonly orOpen: readonly Scope[] };

export const HttpRoutes = defineExtensionPoint<HttpRoute>('transport-http.routes', {
  discipline: 'in-order',
  shape: {
    method: 'string',
    path: 'string',
    body: 'string',
    startsWork: 'boolean',
    'when?': 'function',
    'tokenHeader?': 'string',
    'schema?': 'object',
    'formatError?': 'function',
    handle: 'function',
  },
  describe: ({ method, path, link }) => [
    { kind: 'route', label: method, text: path },
    ...(link === undefined ? [] : [{ kind: 'link', label: link, text: path }]),
  ],
  unread: 'add http: {} under transports, which serves the routes',
});

export interface HttpRequest {
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** Path parameters, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Names in lower case, as in Node. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Name, value, name, value … as received. Shows repeated headers. */
  readonly rawHeaders: readonly string[];
  /** The text of the body for a route with `body: 'json'`; else empty. Decoded on each access. */
  readonly rawBody: string;
  /** The parsed body with `body: 'json'`, a `Uint8Array` with `body: 'bytes'`. */
  readonly body: unknown;
  readonly principal: Principal;
  /** `req_` and 32 hexadecimal digits; returned as `x-request-id`. */
  readonly requestId: string;
  /** When the request was accepted, on the clock's monotonic scale. */
  readonly acceptedAt: number;
  /**
   * Aborted when the caller disconnects before the reply is complete. Also aborted when the drain
   * time of a stopping server ends, with a `TurnError` as the reason: an answer can then still be
   * sent.
   */
  readonly signal: AbortSignal;
  /**
   * The memory of the request, in which its body is reserved. Pass it to the turn; reserve in it
   * what is held besides, before it is held.
   */
  readonly account: Account;
  /** The option `bodyLimit`, in bytes. What a body refers to should count like the body itself. */
  readonly bodyLimit: number;
  /** Lets go of `body` and `rawBody`, for a route that has read them and is not done yet. */
  dropBody(): void;
  /**
   * Adds fields to the access log line of this request, for example `agent`, `steps`. A public
   * route that has verified a credential adds its name as `token_name`: then each request has a
   * line.
   */
  note(fields: Readonly<Record<string, string | number | boolean | undefined>>): void;
}

export interface HttpReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * An object is sent as JSON; a string or bytes as they are, with the content type from `headers`.
   * An iterable is streamed: each item is one write, an empty one none, pulled only when the socket
   * has room. If it throws, the socket is destroyed, so that the caller does not take a partial
   * stream for a complete one.
   */
  readonly body?: object | string | Uint8Array | AsyncIterable<string>;
  /** Written to a stream after `every` milliseconds of silence, so that proxies keep it open. */
  readonly keepAlive?: { readonly every: number; readonly text: string };
}
