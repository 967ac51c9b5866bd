import type { IncomingMessage, RequestListener } from 'node:http';
import { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Extensions, PluginContext, Principal } from '@plugboard/kernel';
import { missingScope, type Reconfiguration } from '@plugboard/kernel/contracts';
import { CONTEXT, inject, injectable } from '@plugboard/kernel/injection';
import Koa, { type Context } from 'koa';
import { RequestBodies } from '../body/request-bodies.js';
import type { HttpConfig } from '../config.js';
import {
  draining,
  headersTooLarge,
  lowMemory,
  methodNotAllowed,
  missingHost,
  notFound,
  outOfScope,
  tokenInQuery,
} from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { Exchanges } from '../exchange/exchanges.js';
import { Authentication } from '../gate/authentication.js';
import { Gate } from '../gate/gate.js';
import { RateLimits } from '../gate/rate-limits.js';
import { ANONYMOUS } from '../limits/caller.js';
import { HeapGuard } from '../limits/heap-guard.js';
import { splitTarget } from '../routing/request-target.js';
import { RouteTable } from '../routing/route-table.js';
import { type HttpReply, type HttpRoute, HttpRoutes } from '../routing/routes.js';
import { type HttpUpgrade, HttpUpgrades } from '../routing/upgrades.js';
import { RouteRequest } from './route-request.js';
import { AcceptableUpgrade } from './upgrade-request.js';

const HEADER_COUNT_LIMIT = 100;

/**
 * Koa without its own watch over the response: the exchange answers and ends every request, failed
 * ones too.
 */
class SilentKoa extends Koa {
  handleRequest(ctx: Context, steps: (ctx: Context) => Promise<void>): Promise<unknown> {
    return steps(ctx).catch((error) => this.emit('error', error, ctx));
  }
}

/** The Koa application: the steps of a request, in order. */
@injectable()
export class HttpApplication {
  readonly #routes: Extensions<HttpRoute>;
  readonly #upgrades: Extensions<HttpUpgrade>;
  /** Bytes received after the head of an upgrade request. */
  readonly #heads = new WeakMap<IncomingMessage, Buffer>();
  readonly #gate: Gate;
  readonly #authentication: Authentication;
  readonly #rates: RateLimits;
  readonly #bodies: RequestBodies;
  readonly #exchanges: Exchanges;
  readonly #heapGuard: HeapGuard;
  readonly #hold: PluginContext['hold'];
  readonly #koa: RequestListener;
  #table: RouteTable = new RouteTable([]);

  constructor(
    @inject(CONTEXT) { extensions, hold }: PluginContext<HttpConfig>,
    @inject(Gate) gate: Gate,
    @inject(Authentication) authentication: Authentication,
    @inject(RateLimits) rates: RateLimits,
    @inject(RequestBodies) bodies: RequestBodies,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(HeapGuard) heapGuard: HeapGuard,
  ) {
    this.#routes = extensions(HttpRoutes);
    this.#upgrades = extensions(HttpUpgrades);
    this.#gate = gate;
    this.#authentication = authentication;
    this.#rates = rates;
    this.#bodies = bodies;
    this.#exchanges = exchanges;
    this.#heapGuard = heapGuard;
    this.#hold = hold;
    const koa = new SilentKoa();
    koa.on('error', () => {}); // errors of the connection, which connections.ts handles
    koa.use((ctx) => this.#serve(this.#table, ctx));
    this.#koa = koa.callback();
  }

  /** Reads the routes. Call it when all are contributed. @throws Error if two entries serve one. */
  start(): void {
    this.#table = new RouteTable(this.#routes.all(), this.#upgrades.all());
  }

  /** @throws Error if two entries serve the same route. */
  reconfigure({ config, extensions }: Reconfiguration<HttpConfig>): () => void {
    const table = new RouteTable(extensions(HttpRoutes).all(), extensions(HttpUpgrades).all());
    return () => {
      this.#table = table;
      this.#gate.configure(config);
      this.#bodies.configure(config);
    };
  }

  /** Handles a request. */
  request(req: IncomingMessage, res: ServerResponse): void {
    this.#koa(req, res);
  }

  /**
   * Whether a request asks for an upgrade that the server offers. Any other is served as if it
   * asked for none.
   */
  isUpgrade(req: IncomingMessage): boolean {
    return isWebSocket(req) && this.#table.upgrades(splitTarget(req.url ?? '')[0]);
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

  /** Begins the exchange, and sends what its steps throw as an error reply. */
  async #serve(table: RouteTable, ctx: Context): Promise<void> {
    ctx.respond = false;
    const exchange = this.#exchanges.begin(ctx.req, ctx.res, this.#heads.get(ctx.req));
    try {
      await this.#run(table, ctx, exchange);
    } catch (error) {
      // Node emits a request before it parses bytes received with its head. After this tick
      // `complete` is up to date.
      await null;
      exchange.fail(error);
    }
  }

  /**
   * The steps of a request. One function: each async function on the way stays on the heap for the
   * whole stream.
   */
  async #run(table: RouteTable, ctx: Context, exchange: Exchange): Promise<void> {
    checkHead(ctx.req);
    exchange.match = table.find(exchange.method, exchange.path);
    // After routing, because public routes accept any Host.
    if (exchange.isUpgrade && this.#exchanges.draining) throw draining();
    const preflight = this.#gate.pass(exchange);
    if (preflight) return exchange.reply(preflight);
    this.#refuseWork(exchange);
    refuseTokenInQuery(exchange);
    const principal = requiresCredential(exchange) ? await this.#authentication.principal(exchange) : ANONYMOUS;
    exchange.principal = principal;
    this.#rates.take(principal, exchange.headers);
    checkScopes(exchange, principal);

    const { match, method, path } = exchange;
    if (!match) return exchange.reply(unrouted(method, path, table.allowed(path)));
    if (exchange.isUpgrade && match.upgrade) {
      return match.upgrade.handle(new AcceptableUpgrade(exchange, principal, this.#authentication, this.#rates));
    }
    const release = this.#hold(); // a reload lets a request end in the plugin that it began in
    try {
      const { body: kind } = match.route;
      const body = kind === 'none' ? undefined : await this.#bodies.read(ctx, exchange, kind);
      match.schema?.(body?.value);
      await exchange.reply(await match.route.handle(new RouteRequest(exchange, match.params, principal, body)));
    } finally {
      release();
    }
  }

  #refuseWork({ match }: Exchange): void {
    if (!match?.route.startsWork) return;
    if (this.#exchanges.draining) throw draining();
    if (this.#heapGuard.shedding) throw lowMemory();
  }
}

/** Checks what Node would answer without a body, or would ignore. */
function checkHead({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): void {
  if (headers.host === undefined && httpVersionMinor === 1) throw missingHost();
  if (rawHeaders.length > 2 * HEADER_COUNT_LIMIT) throw headersTooLarge();
}

function refuseTokenInQuery({ isUpgrade, query }: Exchange): void {
  const name = isUpgrade ? tokenIn(new URLSearchParams(query)) : undefined;
  if (name !== undefined) throw tokenInQuery(name);
}

/** The only place that checks scopes, so that no route can omit it. */
function checkScopes(exchange: Exchange, principal: Principal): void {
  const access = exchange.match?.route.access ?? 'public';
  const missing = typeof access === 'string' ? undefined : missingScope(principal, access);
  if (missing === undefined) return;
  exchange.note({ scope: missing });
  throw outOfScope(missing);
}

/**
 * Every path under `/v1` requires a credential, even unknown ones, so that a 404 reveals nothing to
 * unauthenticated callers.
 */
function requiresCredential({ match, path }: Exchange): boolean {
  return (match !== undefined && typeof match.route.access !== 'string') || path === '/v1' || path.startsWith('/v1/');
}

/**
 * Answers OPTIONS for a known path. @throws HttpError 404 for an unknown path, 405 for any other
 * method.
 */
function unrouted(method: string, path: string, allowed: readonly string[]): HttpReply {
  if (allowed.length === 0) throw notFound(method, path);
  if (method !== 'OPTIONS') throw methodNotAllowed(allowed);
  return { status: 204, headers: { allow: allowed.join(', ') } };
}

function isWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
}

const TOKEN_PARAMETERS = new Set(['token', 'access_token', 'api_key', 'api-key', 'apikey', 'key', 'authorization', 'bearer']);

/** The beginning of issued tokens, see docs/reference/authentication.md. */
const ISSUED_TOKEN = /^svc[pae]_/;

/** The query parameter that seems to hold a token, by its name or its value. */
function tokenIn(query: URLSearchParams): string | undefined {
  for (const [name, value] of query) {
    if (TOKEN_PARAMETERS.has(name.toLowerCase()) || ISSUED_TOKEN.test(value)) return name.slice(0, 64);
  }
  return undefined;
}
