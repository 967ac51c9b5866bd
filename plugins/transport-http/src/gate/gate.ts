import { inject, injectable } from '@plugboard/kernel';
import { hostNotAllowed, malformedHost, originNotAllowed } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpReply } from '../routing/routes.js';
import { AllowedHosts } from './allowed-hosts.js';
import { Authentication } from './authentication.js';
import { Cors } from './cors.js';
import { parseHost } from './host-name.js';
import { isSameOrigin, normalOrigin } from './origin.js';

/** Characters of a refused name that the log repeats. */
const QUOTE_LIMIT = 256;

/**
 * Looks at where a request comes from, before anybody is asked for a credential. A server that asks for none is reached by every page that a
 * browser of this machine has open: there, Host and Origin decide. With credentials they need not, since no page can know one.
 */
@injectable()
export class Gate {
  readonly #authentication: Authentication;
  readonly #hosts: AllowedHosts;
  readonly #cors: Cors;

  constructor(
    @inject(Authentication) authentication: Authentication,
    @inject(AllowedHosts) hosts: AllowedHosts,
    @inject(Cors) cors: Cors,
  ) {
    this.#authentication = authentication;
    this.#hosts = hosts;
    this.#cors = cors;
  }

  /** @returns the whole answer, for a preflight. @throws HttpError: 400 for a Host that is none, 403 for a Host or an Origin that is not allowed. */
  pass(exchange: Exchange): HttpReply | undefined {
    this.#cors.mark(exchange);
    const { host, origin } = exchange.req.headers;
    if (host !== undefined) this.#checkHost(exchange, host); // without one, in HTTP/1.0, it is no browser
    if (this.#authentication.open && origin !== undefined) this.#checkOrigin(exchange, origin, host ?? '');
    return this.#cors.preflight(exchange);
  }

  #checkHost(exchange: Exchange, header: string): void {
    const host = parseHost(header);
    if (!host || hasTwoHosts(exchange.req.rawHeaders)) throw malformedHost();
    const anyHost = !this.#authentication.open || exchange.match?.route.access === 'public';
    if (anyHost || this.#hosts.allow(host)) return;
    exchange.note({ refused: `the Host ${header.slice(0, QUOTE_LIMIT)}` });
    throw hostNotAllowed();
  }

  #checkOrigin(exchange: Exchange, header: string, host: string): void {
    const origin = normalOrigin(header);
    if (this.#cors.lists(header) || (origin !== undefined && isSameOrigin(origin, host.toLowerCase()))) return;
    exchange.note({ refused: `the Origin ${header.slice(0, QUOTE_LIMIT)}` });
    throw originNotAllowed();
  }
}

/** Node takes the first, and a proxy may have looked at the other. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((name, at) => at % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length > 1;
}
