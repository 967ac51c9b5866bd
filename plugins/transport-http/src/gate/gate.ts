import type { IncomingMessage } from 'node:http';
import { inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import {
  headersTooLarge,
  hostNotAllowed,
  malformedHost,
  missingHost,
  originNotAllowed,
  tokenInQuery,
} from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import type { HttpReply } from '../routing/routes.js';
import { AllowedHosts } from './allowed-hosts.js';
import { Authentication } from './authentication.js';
import { Cors } from './cors.js';
import { type HostName, parseHost } from './host-name.js';
import { isSameOrigin, normalOrigin } from './origin.js';

const MAX_HEADERS = 100;

/** Characters of a refused name that are logged. */
const MAX_QUOTE = 256;

/**
 * Checks Host, Origin and Sec-Fetch-Site before authentication. Any web page open in a browser on
 * this machine can reach an open server, so an open server accepts known hosts and origins only.
 * With credentials required the check is unnecessary: a foreign page has none.
 */
export class Gate {
  readonly #authentication: Authentication;
  readonly #hosts: AllowedHosts;
  readonly #cors: Cors;
  /** The last valid Host header. Most requests have the same. */
  #lastHost: { readonly header: string; readonly host: HostName } | undefined;

  constructor(
    @inject(Authentication) authentication: Authentication,
    @inject(AllowedHosts) hosts: AllowedHosts,
    @inject(Cors) cors: Cors,
  ) {
    this.#authentication = authentication;
    this.#hosts = hosts;
    this.#cors = cors;
  }

  configure(config: HttpConfig): void {
    this.#hosts.configure(config);
    this.#cors.configure(config);
  }

  /**
   * @returns the reply to a CORS preflight; undefined for any other request.
   * @throws HttpError 400 or 431 for a malformed head, 403 for a Host or Origin that is refused.
   */
  pass(exchange: Exchange): HttpReply | undefined {
    checkHead(exchange.req);
    this.#cors.addHeaders(exchange);
    const { host, origin, 'sec-fetch-site': site } = exchange.req.headers;
    const { open } = this.#authentication;
    if (host !== undefined) this.#checkHost(exchange, host, open); // HTTP/1.0 may omit it; browsers never do
    // A page may open a WebSocket to any site, and CORS does not apply to it.
    const checksOrigin = open || exchange.isUpgrade;
    if (checksOrigin && origin !== undefined) this.#checkOrigin(exchange, origin, host ?? '');
    else if (open && site !== undefined) checkSite(exchange, site);
    const preflight = this.#cors.preflight(exchange);
    if (!preflight && exchange.isUpgrade) refuseTokenInQuery(exchange);
    return preflight;
  }

  #checkHost(exchange: Exchange, header: string, open: boolean): void {
    const host = this.#parsed(header);
    if (!host || hasTwoHosts(exchange.req.rawHeaders)) throw malformedHost();
    const anyHost = !open || exchange.match?.route.access === 'public';
    if (anyHost || this.#hosts.allow(host)) return;
    exchange.note({ refused: `the Host ${header.slice(0, MAX_QUOTE)}` });
    throw hostNotAllowed();
  }

  #parsed(header: string): HostName | undefined {
    if (this.#lastHost?.header === header) return this.#lastHost.host;
    const host = parseHost(header);
    if (host) this.#lastHost = { header, host };
    return host;
  }

  #checkOrigin(exchange: Exchange, header: string, host: string): void {
    const origin = normalOrigin(header);
    if (this.#cors.allows(header) || (origin !== undefined && isSameOrigin(origin, host.toLowerCase()))) return;
    exchange.note({ refused: `the Origin ${header.slice(0, MAX_QUOTE)}` });
    throw originNotAllowed();
  }
}

/**
 * Refuses what a page of another site loads without an Origin, such as a script or an image (Fetch
 * Metadata). A browser may follow a link from there: the page that has it does not see the answer.
 */
function checkSite(exchange: Exchange, site: string | readonly string[]): void {
  if (site === 'same-origin' || site === 'none') return;
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': destination } = exchange.req.headers;
  if (exchange.method === 'GET' && mode === 'navigate' && destination === 'document') return;
  exchange.note({ refused: `a request from another site, for ${String(destination).slice(0, MAX_QUOTE)}` });
  throw originNotAllowed();
}

/** Checks what Node would answer without a body, or would ignore. */
function checkHead({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): void {
  if (headers.host === undefined && httpVersionMinor === 1) throw missingHost();
  if (rawHeaders.length > 2 * MAX_HEADERS) throw headersTooLarge();
}

/** Node uses the first Host header; a proxy in front may have used the other. */
function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1;
}

const TOKEN_PARAMETERS = new Set(['token', 'access_token', 'api_key', 'api-key', 'apikey', 'key', 'authorization', 'bearer']);

/** The beginning of issued tokens, see docs/reference/authentication.md. */
const ISSUED_TOKEN = /^svc[pae]_/;

/** Refuses a query that seems to hold a token. @throws HttpError 400 */
function refuseTokenInQuery({ query, match }: Exchange): void {
  for (const [name, value] of new URLSearchParams(query)) {
    if (TOKEN_PARAMETERS.has(name.toLowerCase()) || ISSUED_TOKEN.test(value)) {
      throw tokenInQuery(name.slice(0, 64), match?.upgrade?.tokenProtocol);
    }
  }
}
