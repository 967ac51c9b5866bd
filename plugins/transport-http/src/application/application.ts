import { type IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Extensions, PluginContext, Principal } from '@plugboard/kernel';
import { missingScope, OPEN, type Reconfiguration } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import Koa, { type DefaultState, type Middleware, type Next, type ParameterizedContext } from 'koa';
import { parseBody, RequestBodies } from '../body/request-bodies.js';
import type { HttpConfig } from '../config.js';
import { draining, lowMemory, methodNotAllowed, notFound, outOfScope } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { Exchanges } from '../exchange/exchanges.js';
import { HttpOperation, isHttpWatched } from '../exchange/http-channel.js';
import { Replies } from '../exchange/replies.js';
import { Authentication } from '../gate/authentication.js';
import { Gate } from '../gate/gate.js';
import { RequestLimits } from '../gate/request-limits.js';
import { ANONYMOUS } from '../limits/caller.js';
import { HeapGuard } from '../limits/heap-guard.js';
import { HttpMiddleware } from '../routing/middleware.js';
import { splitTarget } from '../routing/request-target.js';
import { RouteTable } from '../routing/route-table.js';
import { type HttpReply, type HttpRoute, HttpRoutes } from '../routing/routes.js';
import { scopesOf } from '../routing/scopes-of.js';
import { type HttpUpgrade, HttpUpgrades } from '../routing/upgrades.js';
import { AcceptableUpgrade, RouteRequest } from './request-view.js';

/** Koa's context with the exchange, which the first step adds. */
type HttpContext = ParameterizedContext<DefaultState, { exchange: Exchange }>;

/** What other plugins contribute to the application. */
interface Contributions {
  readonly routes: Extensions<HttpRoute>;
  readonly upgrades: Extensions<HttpUpgrade>;
  readonly middleware: Extensions<Middleware>;
}

/** The Koa application: the steps of a request, in order. */
export class HttpApplication {
  readonly #contributions: Contributions;
  readonly #pin: PluginContext['pin'];
  readonly #gate: Gate;
  readonly #authentication: Authentication;
  readonly #rates: RequestLimits;
  readonly #bodies: RequestBodies;
  readonly #exchanges: Exchanges;
  readonly #replies: Replies;
  readonly #heapGuard: HeapGuard;
  /** Bytes received after the head of an upgrade request. */
  readonly #heads = new WeakMap<IncomingMessage, Buffer>();
  #table = new RouteTable([]);
  #koa: RequestListener = () => {};

  constructor(
    @inject(CONTEXT) { extensions, pin }: PluginContext<HttpConfig>,
    @inject(Gate) gate: Gate,
    @inject(Authentication) authentication: Authentication,
    @inject(RequestLimits) rates: RequestLimits,
    @inject(RequestBodies) bodies: RequestBodies,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(Replies) replies: Replies,
    @inject(HeapGuard) heapGuard: HeapGuard,
  ) {
    this.#contributions = contributionsOf(extensions);
    this.#pin = pin;
    this.#gate = gate;
    this.#authentication = authentication;
    this.#rates = rates;
    this.#bodies = bodies;
    this.#exchanges = exchanges;
    this.#replies = replies;
    this.#heapGuard = heapGuard;
  }

  /** Call it when everything is contributed. @throws Error if two entries serve the same route. */
  start(): void {
    this.#prepare(this.#contributions)();
  }

  /** @throws Error if two entries serve the same route. */
  reconfigure({ config, extensions }: Reconfiguration<HttpConfig>): () => void {
    const apply = this.#prepare(contributionsOf(extensions));
    return () => {
      apply();
      this.#gate.configure(config);
      this.#bodies.configure(config);
    };
  }

  #prepare({ routes, upgrades, middleware }: Contributions): () => void {
    const table = new RouteTable(routes.all(), upgrades.all());
    const koa = new Koa<DefaultState, { exchange: Exchange }>();
    koa.on('error', (error, ctx?: HttpContext) => this.#replies.onKoaError(error, ctx?.exchange));
    const others = middleware.all();
    if (others.length === 0) {
      koa.use((ctx) => this.#serve(ctx));
    } else {
      koa.use((ctx, next) => this.#serve(ctx, next));
      for (const { value } of others) koa.use(value);
      koa.use((ctx) => this.#route(ctx));
    }
    const listener = koa.callback();
    return () => {
      this.#table = table;
      this.#koa = listener;
    };
  }

  /** Handles a request. */
  request(req: IncomingMessage, res: ServerResponse): void {
    this.#koa(req, res);
  }

  /** Whether a request asks for an upgrade that the server offers; others are served plainly. */
  isUpgrade({ method, headers, url = '' }: IncomingMessage): boolean {
    return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && this.#table.upgrades(splitTarget(url)[0]);
  }

  /** Sends a request for an upgrade through the same steps as any other. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!(socket instanceof Socket) || this.#exchanges.find(socket)) {
      socket.destroy(); // pipelined behind a request that is still being answered
      return;
    }
    const res = new ServerResponse(req);
    res.shouldKeepAlive = false;
    res.assignSocket(socket);
    res.once('finish', () => {
      res.detachSocket(socket);
      socket.destroySoon();
      res.emit('close'); // as Node does after a reply, so that the exchange ends
    });
    this.#heads.set(req, head);
    this.#koa(req, res);
  }

  /**
   * The outermost step: begins the exchange and does the first checks. When the middleware has
   * returned, Koa sends the reply that it finds on the context, unless it was written already.
   *
   * @param next calls the middleware of other plugins, if there is any.
   */
  async #serve(ctx: HttpContext, next?: Next): Promise<void> {
    const exchange = this.#exchanges.begin(ctx, this.#heads.get(ctx.req), next !== undefined);
    const unpin = this.#pin(); // a reload lets a request end in the plugin that it began in
    ctx.exchange = exchange;
    try {
      exchange.match = this.#table.find(exchange.method, exchange.path, exchange);
      exchange.route = exchange.match?.route ?? this.#table.routeAt(exchange.path, exchange);
      if (isHttpWatched()) exchange.operation = operationOf(exchange);
      if (exchange.isUpgrade && this.#exchanges.draining) throw draining();
      const preflight = this.#gate.pass(exchange);
      if (preflight) {
        this.#replies.set(exchange, preflight);
      } else {
        this.#refuseWork(exchange);
        await (next ? next() : this.#route(ctx));
      }
      const streamed = this.#replies.send(exchange);
      if (streamed) await streamed;
    } catch (error) {
      // Node emits a request before it parses bytes received with its head. After this tick
      // `complete` is up to date.
      await null;
      this.#replies.fail(exchange, error);
    } finally {
      unpin();
    }
  }

  /** The innermost step: identifies the caller, reads the body, waits its turn, calls the route. */
  async #route({ exchange }: HttpContext): Promise<void> {
    const { match, method, path } = exchange;
    // This await lets Node parse the body bytes that arrived with the head: see `#serve`.
    const principal = requiresCredential(exchange) ? await this.#authentication.principal(exchange) : ANONYMOUS;
    exchange.principal = principal;
    this.#rates.take(principal, exchange.ctx);
    checkScopes(exchange, principal);
    if (!match) {
      this.#replies.set(exchange, unrouted(method, path, this.#table.allowed(path)));
    } else if (exchange.isUpgrade && match.upgrade) {
      await match.upgrade.handle(new AcceptableUpgrade(exchange, principal, this.#authentication, this.#rates));
    } else {
      const { body: kind } = match.route;
      const request = new RouteRequest(exchange, match.params, principal, this.#bodies.limit);
      const body = kind === 'none' ? undefined : this.#bodies.read(exchange, kind);
      const bytes = body instanceof Promise ? await body : body;
      const slice = exchange.account.timeSlice();
      if (slice) {
        await slice;
        exchange.signal.throwIfAborted();
      }
      if (bytes && kind !== 'none') request.receive(parseBody(bytes, kind, exchange.account));
      match.schema?.(request.body);
      // What a route has read stays counted until it is done, also when its caller has left.
      const leave = exchange.account.hold();
      try {
        this.#replies.set(exchange, await match.route.handle(request));
      } finally {
        leave();
      }
    }
  }

  #refuseWork({ match }: Exchange): void {
    if (!match?.route.startsWork) return;
    if (this.#exchanges.draining) throw draining();
    if (this.#heapGuard.shedding) throw lowMemory();
  }
}

function operationOf({ requestId, method, path, match, req, logFields }: Exchange): HttpOperation {
  return new HttpOperation({ requestId, method, path, route: match?.route.path, headers: req.headers, logFields });
}

function contributionsOf(extensions: PluginContext['extensions']): Contributions {
  return { routes: extensions(HttpRoutes), upgrades: extensions(HttpUpgrades), middleware: extensions(HttpMiddleware) };
}

/** Answers OPTIONS for a known path. @throws HttpError 404 or 405 otherwise. */
function unrouted(method: string, path: string, allowed: readonly string[]): HttpReply {
  if (allowed.length === 0) throw notFound(method, path);
  if (method !== 'OPTIONS') throw methodNotAllowed(allowed);
  return { status: 204, headers: { allow: allowed.join(', ') } };
}

/** Every path under `/v1`, also an unknown one, requires a credential: a 404 reveals nothing. */
function requiresCredential({ match, path }: Exchange): boolean {
  return (match !== undefined && typeof match.route.access !== 'string') || path === '/v1' || path.startsWith('/v1/');
}

/** The only place that checks scopes, so that no route can omit it. @throws HttpError 403 */
function checkScopes(exchange: Exchange, principal: Principal): void {
  const access = exchange.match?.route.access ?? 'public';
  if (typeof access === 'string') return;
  if ('anyOf' in access && access.anyOf.some((scope) => principal.scopes.includes(scope))) return;
  if ('orOpen' in access && principal === OPEN) return;
  const missing = missingScope(principal, scopesOf(access));
  if (missing === undefined) return;
  exchange.note({ scope: missing });
  throw outOfScope(missing, principal);
}
