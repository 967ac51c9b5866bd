import type { Principal } from '@plugboard/kernel';
import type { Exchange, LogFields } from '../exchange/exchange.js';
import type { Authentication } from '../gate/authentication.js';
import type { RateLimits } from '../gate/rate-limits.js';
import type { MemoryReservation } from '../limits/memory-limits.js';
import type { HttpRequest } from '../routing/routes.js';
import type { AcceptedUpgrade, UpgradeRequest } from '../routing/upgrades.js';

/** The view of an exchange that the owner of an upgraded connection receives. */
export class AcceptableUpgrade implements UpgradeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: HttpRequest['headers'];
  readonly rawHeaders: readonly string[];
  readonly principal: Principal;
  readonly requestId: string;
  readonly acceptedAt: number;
  readonly signal: AbortSignal;
  readonly address: string;
  readonly open: boolean;
  readonly #exchange: Exchange;
  readonly #authentication: Authentication;
  readonly #rates: RateLimits;

  constructor(exchange: Exchange, principal: Principal, authentication: Authentication, rates: RateLimits) {
    this.method = exchange.method;
    this.path = exchange.path;
    this.query = new URLSearchParams(exchange.query);
    this.headers = exchange.req.headers;
    this.rawHeaders = exchange.req.rawHeaders;
    this.principal = principal;
    this.requestId = exchange.requestId;
    this.acceptedAt = exchange.acceptedAt;
    this.signal = exchange.signal;
    this.address = exchange.req.socket.remoteAddress ?? '';
    this.open = authentication.open;
    this.#exchange = exchange;
    this.#authentication = authentication;
    this.#rates = rates;
  }

  get draining(): AbortSignal {
    return this.#exchange.draining;
  }

  accept(): AcceptedUpgrade {
    return this.#exchange.accept();
  }

  authenticate(): Promise<Principal> {
    return this.#authentication.again(this.#exchange);
  }

  countRequest(): void {
    this.#rates.take(this.principal);
  }

  reserveBody(): MemoryReservation {
    return this.#exchange.reserveBody();
  }

  reserveReply(): MemoryReservation {
    return this.#exchange.reserveReply();
  }

  note(fields: LogFields): void {
    this.#exchange.note(fields);
  }
}
