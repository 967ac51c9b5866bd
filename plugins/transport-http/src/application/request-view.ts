import type { Principal } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import type { RequestBody } from '../body/request-bodies.js';
import type { Exchange, LogFields } from '../exchange/exchange.js';
import type { Authentication } from '../gate/authentication.js';
import type { RequestLimits } from '../gate/request-limits.js';
import type { HttpRequest } from '../routing/routes.js';
import type { AcceptedUpgrade, UpgradeRequest } from '../routing/upgrades.js';

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
