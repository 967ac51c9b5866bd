import type { RequestListener } from 'node:http';
import { type Extensions, inject, injectable, missingScope } from '@plugboard/kernel';
import Koa, { type Context, type Next } from 'koa';
import { JsonBodies } from '../body/json-body.js';
import { draining, headersTooLarge, methodNotAllowed, missingHost, notFound, outOfScope } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { Exchanges } from '../exchange/exchanges.js';
import { Authentication, NOBODY } from '../gate/authentication.js';
import { Gate } from '../gate/gate.js';
import { RateLimits } from '../gate/rate-limits.js';
import { RouteTable } from '../routing/route-table.js';
import type { HttpReply, HttpRoute } from '../routing/routes.js';
import { RouteRequest } from './route-request.js';

/** Where the plugin's `register` leaves its reads for the class below. */
export const ROUTES = Symbol('transport-http.routes');

const HEADER_COUNT_LIMIT = 100;

/** What the middleware hands down. */
interface State {
  exchange: Exchange;
}

type HttpContext = Context & { state: State };

/** The Koa application: what happens to a request, in this order. */
@injectable()
export class HttpApplication {
  readonly #routes: Extensions<HttpRoute>;
  readonly #gate: Gate;
  readonly #authentication: Authentication;
  readonly #rates: RateLimits;
  readonly #bodies: JsonBodies;
  readonly #exchanges: Exchanges;

  constructor(
    @inject(ROUTES) routes: Extensions<HttpRoute>,
    @inject(Gate) gate: Gate,
    @inject(Authentication) authentication: Authentication,
    @inject(RateLimits) rates: RateLimits,
    @inject(JsonBodies) bodies: JsonBodies,
    @inject(Exchanges) exchanges: Exchanges,
  ) {
    this.#routes = routes;
    this.#gate = gate;
    this.#authentication = authentication;
    this.#rates = rates;
    this.#bodies = bodies;
    this.#exchanges = exchanges;
  }

  /** For Node's server, once the routes are there. @throws Error where two entries open the same route. */
  listener(): RequestListener {
    const table = new RouteTable(this.#routes.all());
    const koa = new Koa<State>();
    koa.on('error', (error) => this.#exchanges.lost(error));
    koa.use((ctx: HttpContext, next) => this.#answer(ctx, next));
    koa.use((ctx: HttpContext, next) => this.#checkHead(ctx, next));
    koa.use((ctx: HttpContext, next) => this.#find(table, ctx, next));
    koa.use((ctx: HttpContext, next) => this.#passGate(ctx, next));
    koa.use((ctx: HttpContext, next) => this.#refuseWhileDraining(ctx, next));
    koa.use((ctx: HttpContext, next) => this.#authenticate(ctx, next));
    koa.use((ctx: HttpContext, next) => this.#checkScopes(ctx, next));
    koa.use((ctx: HttpContext) => this.#handle(table, ctx));
    return koa.callback();
  }

  /** Opens the exchange, and answers with whatever is thrown further in. */
  async #answer(ctx: HttpContext, next: Next): Promise<void> {
    ctx.respond = false;
    const exchange = this.#exchanges.begin(ctx.req, ctx.res);
    ctx.state.exchange = exchange;
    try {
      await next();
    } catch (error) {
      // Node hands a request over before it reads what came together with its head; a moment later it knows whether the body is whole.
      await null;
      exchange.refuse(error);
    }
  }

  /** What Node would refuse by itself, and what it would pass over in silence. */
  #checkHead(ctx: HttpContext, next: Next): Promise<void> {
    const { headers, rawHeaders, httpVersionMinor } = ctx.req;
    if (headers.host === undefined && httpVersionMinor === 1) throw missingHost();
    if (rawHeaders.length > 2 * HEADER_COUNT_LIMIT) throw headersTooLarge();
    return next();
  }

  #find(table: RouteTable, { state: { exchange } }: HttpContext, next: Next): Promise<void> {
    exchange.match = table.find(exchange.method, exchange.path);
    return next();
  }

  /** Behind what finds the route, because probes may come under any Host. */
  #passGate({ state: { exchange } }: HttpContext, next: Next): Promise<void> {
    const preflight = this.#gate.pass(exchange);
    return preflight ? exchange.reply(preflight) : next();
  }

  #refuseWhileDraining({ state: { exchange } }: HttpContext, next: Next): Promise<void> {
    if (this.#exchanges.draining && exchange.match?.route.startsWork) throw draining();
    return next();
  }

  /** Under `/v1` everything asks for a credential, also what is not there: who has none learns nothing. */
  async #authenticate({ state: { exchange } }: HttpContext, next: Next): Promise<void> {
    const asks = isForCallers(exchange);
    exchange.principal = asks ? await this.#authentication.principal(exchange) : NOBODY;
    this.#rates.take(exchange.principal, exchange.headers);
    return next(); // not awaited, as below: a stream would hold each call open that waits for it
  }

  /** The one place where scopes are asked for, so that no route can forget to. */
  #checkScopes({ state: { exchange } }: HttpContext, next: Next): Promise<void> {
    const { match, principal = NOBODY } = exchange;
    const access = match?.route.access ?? 'public';
    const missing = access === 'public' ? undefined : missingScope(principal, access);
    if (missing === undefined) return next();
    exchange.note({ scope: missing });
    throw outOfScope(missing);
  }

  async #handle(table: RouteTable, ctx: HttpContext): Promise<void> {
    const { exchange } = ctx.state;
    const { match, method, path, principal = NOBODY } = exchange;
    if (!match) return exchange.reply(unrouted(method, path, table.allowed(path)));
    const body = match.route.body === 'json' ? await this.#bodies.read(ctx) : undefined;
    return exchange.reply(await match.route.handle(new RouteRequest(exchange, match.params, principal, body)));
  }
}

function isForCallers({ match, path }: Exchange): boolean {
  return (match !== undefined && match.route.access !== 'public') || path === '/v1' || path.startsWith('/v1/');
}

/** @throws HttpError but for OPTIONS. */
function unrouted(method: string, path: string, allowed: readonly string[]): HttpReply {
  if (allowed.length === 0) throw notFound(method, path);
  if (method !== 'OPTIONS') throw methodNotAllowed(allowed);
  return { status: 204, headers: { allow: allowed.join(', ') } };
}
