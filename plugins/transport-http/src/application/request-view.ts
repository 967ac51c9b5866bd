import type { Principal } from '@plugboard/kernel';
import type { Exchange, LogFields } from '../exchange/exchange.js';
import type { HttpRequest } from '../routing/routes.js';

/**
 * What routes and the owners of upgraded connections see of an exchange. Its functions need no
 * `this`: `handle({ body, note })` can take them apart.
 */
export class RequestView {
  readonly method: string;
  readonly path: string;
  readonly headers: HttpRequest['headers'];
  readonly rawHeaders: readonly string[];
  readonly principal: Principal;
  readonly requestId: string;
  readonly acceptedAt: number;
  readonly signal: AbortSignal;
  readonly note: (fields: LogFields) => void;
  protected readonly exchange: Exchange;
  #query: URLSearchParams | undefined;

  constructor(exchange: Exchange, principal: Principal) {
    const { method, path, req, requestId, acceptedAt, signal } = exchange;
    this.method = method;
    this.path = path;
    this.headers = req.headers;
    this.rawHeaders = req.rawHeaders;
    this.principal = principal;
    this.requestId = requestId;
    this.acceptedAt = acceptedAt;
    this.signal = signal;
    // No arrow function: V8 keeps one that is assigned to a property until a full collection.
    this.note = exchange.note.bind(exchange);
    this.exchange = exchange;
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.exchange.query);
    return this.#query;
  }
}
