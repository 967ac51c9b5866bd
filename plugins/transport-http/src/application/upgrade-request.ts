import type { Principal } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import type { Exchange } from '../exchange/exchange.js';
import type { Authentication } from '../gate/authentication.js';
import type { RequestLimits } from '../gate/request-limits.js';
import type { AcceptedUpgrade, UpgradeRequest } from '../routing/upgrades.js';
import { RequestView } from './request-view.js';

/** The view of an exchange that the owner of an upgraded connection receives. */
export class AcceptableUpgrade extends RequestView implements UpgradeRequest {
  readonly address: string;
  readonly open: boolean;
  readonly #authentication: Authentication;
  readonly #rates: RequestLimits;

  constructor(exchange: Exchange, principal: Principal, authentication: Authentication, rates: RequestLimits) {
    super(exchange, principal);
    this.address = exchange.address;
    this.open = authentication.open;
    this.#authentication = authentication;
    this.#rates = rates;
  }

  get draining(): AbortSignal {
    return this.exchange.draining;
  }

  readonly accept = (): AcceptedUpgrade => this.exchange.accept();

  readonly authenticate = (): Promise<Principal> => this.#authentication.again(this.exchange);

  readonly countRequest = (): void => this.#rates.take(this.principal);

  readonly openAccount = (): Account => this.exchange.openAccount();
}
