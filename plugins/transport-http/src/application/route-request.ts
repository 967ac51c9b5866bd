import type { Principal } from '@plugboard/kernel';
import type { RequestBody } from '../body/request-bodies.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpRequest } from '../routing/routes.js';
import { RequestView } from './request-view.js';

/** The view of an exchange that its route receives. */
export class RouteRequest extends RequestView implements HttpRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly #bytes: Buffer | undefined;

  constructor(exchange: Exchange, params: Readonly<Record<string, string>>, principal: Principal, body: RequestBody | undefined) {
    super(exchange, principal);
    this.params = params;
    this.body = body?.value;
    this.#bytes = body?.bytes;
  }

  get rawBody(): string {
    return this.#bytes?.toString() ?? '';
  }
}
