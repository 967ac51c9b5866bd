import type { Principal } from '@plugboard/kernel';
import type { RequestBody } from '../body/request-bodies.js';
import type { Exchange, LogFields } from '../exchange/exchange.js';
import type { MemoryReservation } from '../limits/memory-limits.js';
import type { HttpRequest } from '../routing/routes.js';

/** The view of an exchange that its route receives. */
export class RouteRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: HttpRequest['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: unknown;
  readonly principal: Principal;
  readonly requestId: string;
  readonly acceptedAt: number;
  readonly signal: AbortSignal;
  readonly #exchange: Exchange;
  readonly #bytes: Buffer | undefined;
  #query: URLSearchParams | undefined;

  constructor(exchange: Exchange, params: Readonly<Record<string, string>>, principal: Principal, body: RequestBody | undefined) {
    this.method = exchange.method;
    this.path = exchange.path;
    this.params = params;
    this.headers = exchange.req.headers;
    this.rawHeaders = exchange.req.rawHeaders;
    this.#bytes = body?.bytes;
    this.body = body?.value;
    this.principal = principal;
    this.requestId = exchange.requestId;
    this.acceptedAt = exchange.acceptedAt;
    this.signal = exchange.signal;
    this.#exchange = exchange;
  }

  get rawBody(): string {
    return this.#bytes?.toString() ?? '';
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#exchange.query);
    return this.#query;
  }

  reserveReply(): MemoryReservation {
    return this.#exchange.reserveReply();
  }

  note(fields: LogFields): void {
    this.#exchange.note(fields);
  }
}
