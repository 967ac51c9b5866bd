import { STATUS_CODES } from 'node:http';
import type { Clock, PluginContext } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { HttpError } from '../errors/http-error.js';
import { internalError, memoryInUse, notFound } from '../errors/refusals.js';
import type { HttpReply } from '../routing/routes.js';
import { isArriving, sendAndClose } from './closing-reply.js';
import { ErrorBodies } from './error-bodies.js';
import type { Exchange } from './exchange.js';
import { Exchanges, isDisconnect } from './exchanges.js';
import { contentOf, hasBody, headOf, isStreamed, JSON_TYPE, type Streamed, setBody, setHead, typeOf } from './reply-parts.js';
import { ASCII, STALL_LIMIT, StreamedBody } from './streamed-body.js';

/** Milliseconds that a stream has to send an error once its credential is revoked. */
const REVOKED_GRACE = 1_000;

/** Bytes up to which a reply is not counted: it fits into the buffers of its connection. */
const UNCOUNTED = 16 * 1024;

/** Headers that describe the body of a reply. An error reply has another body. */
const BODY_HEADERS = ['content-type', 'content-encoding', 'etag', 'last-modified', 'cache-control'];

/**
 * Sends replies and errors.
 *
 * 1. A reply that middleware of other plugins may change is put on Koa's context, and Koa sends it.
 *    So are errors, and replies without a body.
 * 2. Other replies are written at once. They take the response over with `ctx.respond = false`, as
 *    streams do, and replies to requests that still arrive.
 */
export class Replies {
  readonly #clock: Clock;
  readonly #errors: ErrorBodies;
  readonly #exchanges: Exchanges;

  constructor(
    @inject(CONTEXT) { clock }: PluginContext,
    @inject(ErrorBodies) errors: ErrorBodies,
    @inject(Exchanges) exchanges: Exchanges,
  ) {
    this.#clock = clock;
    this.#errors = errors;
    this.#exchanges = exchanges;
  }

  /**
   * Sends the reply of a route, or puts it on the context for middleware: of a stream, only the
   * status and the headers.
   *
   * @throws Error for an invalid header or a body that cannot be serialised, HttpError 503 if
   * there is no memory for it.
   */
  set(exchange: Exchange, reply: HttpReply): void {
    const { ctx, account } = exchange;
    exchange.reply = reply;
    if (!exchange.isWrapped && hasBody(reply) && exchange.isPending && !isUnread(exchange)) {
      this.#write(exchange, reply, contentOf(reply.body));
      return;
    }
    if (isStreamed(reply) && !exchange.isWrapped) return;
    setHead(exchange, reply);
    if (isStreamed(reply)) return;
    setBody(ctx, reply.body);
    this.#reserve(account, Number(ctx.res.getHeader('content-length') ?? 0));
  }

  /** Sends a reply as it is. */
  #write(exchange: Exchange, { status, headers, body }: HttpReply, content: string | Buffer): void {
    const { ctx, requestId } = exchange;
    const bytes = Buffer.byteLength(content);
    this.#reserve(exchange.account, bytes);
    const head = headOf(requestId, headers, typeOf(body));
    head['content-length'] = bytes;
    if (this.#exchanges.draining) head.connection = 'close';
    ctx.res.writeHead(status, head);
    ctx.respond = false;
    exchange.headAt = this.#clock.monotonic();
    ctx.res.end(content, bytes === content.length ? ASCII : 'utf8');
    watch(exchange, this.#clock);
  }

  /** What the turn has reserved for its answer is enough for a reply that consists of it. */
  #reserve(account: Account, bytes: number): void {
    if (bytes > UNCOUNTED && bytes > account.reserved && !account.reserve(bytes - account.reserved)) throw memoryInUse(account);
  }

  /**
   * Completes a reply that was not written yet, when every middleware has returned. Koa sends it
   * next, unless it is a stream.
   *
   * @throws HttpError if there is no reply.
   */
  send(exchange: Exchange): Promise<void> | undefined {
    const { ctx, reply } = exchange;
    const isOpen = exchange.isPending && ctx.respond !== false;
    if (reply && isStreamed(reply)) {
      if (isOpen && ctx.body === undefined) {
        this.#beginStream(exchange, reply);
        return this.#stream(exchange, reply);
      }
      drop(exchange); // a middleware replied, or the caller has disconnected
    }
    if (isOpen) this.#complete(exchange);
    return undefined;
  }

  /**
   * Replies with an error: an `HttpError` as it is, an error of `ctx.throw` with its status, any
   * other error as a generic 500. The details of the latter are logged.
   */
  fail(exchange: Exchange, error: unknown): void {
    drop(exchange);
    const { ctx } = exchange;
    if (exchange.isUpgraded || ctx.headerSent) {
      exchange.logError(error, exchange.isUpgraded ? 'an upgraded connection failed' : 'a reply failed');
      exchange.destroy('agent_error');
      return;
    }
    const known = httpErrorOf(error);
    if (!known) exchange.logError(error, 'a request failed with an unexpected error');
    if (!exchange.isPending) return;
    try {
      this.#setError(exchange, known ?? internalError());
    } catch (fault) {
      exchange.logError(fault, 'a route threw an HttpError with invalid headers');
      this.#setError(exchange, internalError());
    }
    this.#complete(exchange);
  }

  /**
   * Ends an exchange whose connection is unusable: sends the error if no reply was started, else
   * destroys the connection. The middleware may still run.
   */
  abort(exchange: Exchange, error: HttpError): void {
    exchange.cancel(error);
    if (!exchange.isPending) {
      exchange.destroy('cancelled_by_client');
      return;
    }
    this.#setError(exchange, error);
    this.#close(exchange);
  }

  /**
   * Ends an exchange whose credential was revoked: replies with the error, or aborts the work for
   * the reply that was started, and destroys the connection a moment later.
   */
  revoke(exchange: Exchange, error: HttpError): void {
    if (exchange.hasEnded) return;
    if (exchange.isPending) {
      this.abort(exchange, error);
      return;
    }
    exchange.cancel(error);
    this.#clock.after(REVOKED_GRACE, () => {
      if (!exchange.hasEnded) exchange.destroy('cancelled_by_client');
    });
  }

  /** Handles an error of a body that Koa sends. connections.ts counts those of connections. */
  onKoaError(error: unknown, exchange: Exchange | undefined): void {
    if (!exchange || exchange.hasEnded || isDisconnect(error)) return;
    exchange.logError(error, 'a reply failed');
    if (exchange.ctx.headerSent) exchange.destroy('agent_error');
  }

  #setError(exchange: Exchange, error: HttpError): void {
    const { ctx, reply } = exchange;
    for (const name of [...BODY_HEADERS, ...Object.keys(reply?.headers ?? {})]) ctx.remove(name);
    const formatted = this.#errors.format(error, exchange.requestId, { route: exchange.route, headers: ctx.headers });
    exchange.reply = formatted;
    setHead(exchange, formatted);
    setBody(ctx, JSON.stringify(formatted.body), JSON_TYPE);
    exchange.errorCode = error.code;
  }

  #complete(exchange: Exchange): void {
    const { ctx } = exchange;
    const { response } = ctx; // the members of the context only forward, for each access
    if (isPlain(response.body)) response.body = JSON.stringify(response.body);
    const { body = null, status } = response;
    if (body === null && status >= 400) throw unanswered(exchange, status);
    exchange.headAt = this.#clock.monotonic();
    if (this.#exchanges.draining) ctx.set('connection', 'close');
    const isComplete = body === null || typeof body === 'string' || Buffer.isBuffer(body);
    if (isComplete && isUnread(exchange)) this.#close(exchange);
    else process.nextTick(watch, exchange, this.#clock); // Koa sends before, in this turn of the event loop
  }

  #close(exchange: Exchange): void {
    exchange.headAt ??= this.#clock.monotonic();
    sendAndClose(exchange.ctx, this.#clock);
    exchange.end();
  }

  /** Writes the head of a stream. @throws Error for an invalid header. */
  #beginStream(exchange: Exchange, { status, headers }: HttpReply): void {
    const { ctx, requestId, isWrapped } = exchange;
    const { res } = ctx;
    if (this.#exchanges.draining || isUnread(exchange)) ctx.set('connection', 'close');
    if (isWrapped) res.writeHead(res.statusCode);
    else res.writeHead(status, headOf(requestId, headers));
    ctx.respond = false;
    exchange.headAt = this.#clock.monotonic();
  }

  /** Sends a stream, or its head to HEAD, until its end or until the caller disconnects. */
  async #stream(exchange: Exchange, { body, keepAlive }: Streamed): Promise<void> {
    const { ctx } = exchange;
    const { res } = ctx;
    const iterator = body[Symbol.asyncIterator]();
    try {
      if (ctx.method !== 'HEAD') {
        await new StreamedBody(res, iterator, this.#clock, () => exchange.destroy('timeout')).send(keepAlive);
      }
      if (res.destroyed) return;
      res.end();
      watch(exchange, this.#clock);
    } catch (error) {
      exchange.logError(error, 'a streamed reply failed');
      exchange.destroy('agent_error');
    } finally {
      await iterator.return?.();
    }
  }
}

/** Destroys the connection of a caller that reads nothing of a reply for 30 seconds. */
function watch(exchange: Exchange, clock: Clock): void {
  const { res } = exchange.ctx;
  const { socket } = res;
  if (!socket || (res.writableEnded && socket.writableLength === 0)) return;
  const read = () => socket.bytesWritten - socket.writableLength;
  let before = read();
  const timer = clock.after(STALL_LIMIT, () => {
    if (socket.writableLength > 0 && read() === before) exchange.destroy('timeout');
    before = read();
    timer.refresh();
  });
  res.once('close', () => timer.cancel());
}

/** Lets go of a stream that is not sent. */
function drop(exchange: Exchange): void {
  const { reply } = exchange;
  if (!reply || !isStreamed(reply)) return;
  exchange.reply = undefined;
  const returned = reply.body[Symbol.asyncIterator]().return?.();
  returned?.catch((error: unknown) => exchange.logError(error, 'a streamed reply failed'));
}

/** Whether Koa would send a body of middleware as JSON. */
function isPlain(body: unknown): boolean {
  return Array.isArray(body) || (typeof body === 'object' && body !== null && Object.getPrototypeOf(body) === Object.prototype);
}

function isUnread({ bodyIsRead, req }: Exchange): boolean {
  return !bodyIsRead && isArriving(req);
}

/** The error for a middleware that replied with a status only, or not at all. */
function unanswered({ method, path }: Exchange, status: number): HttpError {
  return status === 404 ? notFound(method, path) : new HttpError(status, STATUS_CODES[status] ?? `Status ${status}`);
}

/** An `HttpError`, or an error of the package http-errors, which `ctx.throw` throws. */
function httpErrorOf(error: unknown): HttpError | undefined {
  if (error instanceof HttpError) return error;
  if (!(error instanceof Error) || !('expose' in error) || error.expose !== true) return undefined;
  return 'status' in error && typeof error.status === 'number' ? new HttpError(error.status, error.message) : undefined;
}
