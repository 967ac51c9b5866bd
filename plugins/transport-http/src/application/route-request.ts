import type { Principal } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import type { RequestBody } from '../body/request-bodies.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpRequest } from '../routing/routes.js';
import { RequestView } from './request-view.js';

/** The view of an exchange that its route receives. */
export class RouteRequest extends RequestView implements HttpRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly bodyLimit: number;
  #body: RequestBody | undefined;

  constructor(exchange: Exchange, params: Readonly<Record<string, string>>, principal: Principal, bodyLimit: number) {
    super(exchange, principal);
    this.params = params;
    this.bodyLimit = bodyLimit;
  }

  get body(): unknown {
    return this.#body?.value;
  }

  get rawBody(): string {
    return this.#body?.bytes.toString() ?? '';
  }

  get account(): Account {
    return this.exchange.account;
  }

  /** Sets the body, when it has arrived. */
  receive(body: RequestBody): void {
    this.#body = body;
  }

  readonly dropBody = (): void => {
    this.#body = undefined;
  };
}
