import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Logger, Principal } from '@plugboard/kernel';
import type { Budget } from '@plugboard/kernel/contracts';
import type { ErrorBodies } from '../errors/error-format.js';
import { HttpError } from '../errors/http-error.js';
import { internalError, tooManyReplies } from '../errors/refusals.js';
import { ownerOf } from '../limits/caller.js';
import { MemoryLease, type MemoryLimits, UNCOUNTED } from '../limits/memory-limits.js';
import { splitTarget } from '../routing/request-target.js';
import type { RouteMatch } from '../routing/route-table.js';
import type { HttpReply } from '../routing/routes.js';
import type { AcceptedUpgrade } from '../routing/upgrades.js';
import type { ActiveMember } from './active-set.js';
import { type ReplyObserver, type ReplyOutcome, ResponseWriter } from './response-writer.js';

/** Fields of a line of the access log. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** What an exchange needs from the server. */
export interface ExchangeDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly errors: ErrorBodies;
  readonly memory: MemoryLimits;
  /** Whether connections are closed after their reply. */
  readonly draining: boolean;
  /** Called once, when the reply has been sent or the connection is closed. */
  onEnd(exchange: Exchange): void;
}

const DISCONNECTED = new Error('the caller disconnected');
const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';
const BINARY_TYPE = 'application/octet-stream';

/**
 * One request and its reply.
 *
 * 1. It begins when Node emits the request, before the body is read.
 * 2. The steps of `HttpApplication` set the route and the principal.
 * 3. `reply` or `fail` answers. Only the first answer is sent.
 * 4. It ends when the reply has been sent or the connection is closed.
 */
export class Exchange implements ReplyObserver, ActiveMember {
  readonly req: IncomingMessage;
  readonly requestId: string;
  /** On the clock's monotonic scale. */
  readonly acceptedAt: number;
  readonly method: string;
  /** The remote address. Behind a proxy it is the proxy's. */
  readonly address: string;
  /** As sent, without the query. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Headers of every reply, error replies too. The steps may add to them before the reply. */
  readonly headers: Record<string, string>;
  /** Among the exchanges in progress. */
  place = -1;
  match: RouteMatch | undefined;
  principal: Principal | undefined;

  readonly #socket: Socket;
  readonly #bytesBefore: number;
  readonly #dependencies: ExchangeDependencies;
  readonly #writer: ResponseWriter;
  readonly #abort = new AbortController();
  readonly #head: Buffer | undefined;
  #body: MemoryLease | undefined;
  #reply: MemoryLease | undefined;
  #draining: AbortController | undefined;
  readonly #logFields: Record<string, LogFields[string]> = {};
  #status = 0;
  #errorCode: string | undefined;

  /** @param head bytes received after the head of an upgrade request; undefined for any other. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    requestId: string,
    dependencies: ExchangeDependencies,
    head: Buffer | undefined = undefined,
  ) {
    this.req = req;
    this.requestId = requestId;
    this.acceptedAt = dependencies.clock.monotonic();
    this.method = req.method ?? '';
    [this.path, this.query] = splitTarget(req.url ?? '');
    this.headers = { 'x-request-id': requestId, 'x-content-type-options': 'nosniff' };
    this.#socket = req.socket;
    this.address = req.socket.remoteAddress ?? ''; // unknown once the connection is closed
    this.#head = head;
    this.#bytesBefore = req.socket.bytesWritten;
    this.#dependencies = dependencies;
    this.#writer = new ResponseWriter(req, res, dependencies.clock, this);
  }

  /**
   * Aborted when the caller disconnects before the reply is complete, or when the server must stop.
   */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the request asks for an upgrade that the server offers. */
  get isUpgrade(): boolean {
    return this.#head !== undefined;
  }

  /** Aborted when the server begins to stop. */
  get draining(): AbortSignal {
    this.#draining ??= new AbortController();
    return this.#draining.signal;
  }

  /** Called when the server begins to stop. */
  drain(): void {
    this.#draining?.abort();
  }

  /** Begins to count the memory of the body, until the exchange ends. */
  leaseBody(): MemoryLease {
    this.#body ??= this.#lease(this.#dependencies.memory.bodies);
    return this.#body;
  }

  /**
   * Counts the memory of a reply that may outlive the exchange. The owner of the reply ends the
   * lease.
   */
  leaseReply(): MemoryLease {
    return new MemoryLease(this.#dependencies.memory.replies, ownerOf(this.principal, this.address));
  }

  #lease(budget: Budget): MemoryLease {
    return new MemoryLease(budget, ownerOf(this.principal, this.address));
  }

  /** Called when the body has been read to its end, which Node may report later. */
  onBodyRead(): void {
    this.#writer.bodyIsRead = true;
  }

  /** Adds fields to the access log line. */
  note(fields: LogFields): void {
    Object.assign(this.#logFields, fields);
  }

  get logFields(): LogFields {
    return this.#logFields;
  }

  /** 0 if there was no reply. */
  get status(): number {
    return this.#status;
  }

  /** The code of the error reply, if it has one. */
  get errorCode(): string | undefined {
    return this.#errorCode;
  }

  /** How the reply ended, if not normally. */
  get outcome(): ReplyOutcome | undefined {
    return this.#writer.outcome;
  }

  /** When the head of the reply was written, on the clock's monotonic scale. */
  get headAt(): number | undefined {
    return this.#writer.headAt;
  }

  /** Bytes sent, including the head. */
  get bytesOut(): number {
    return this.#socket.bytesWritten - this.#bytesBefore;
  }

  isOn(socket: unknown): boolean {
    return this.#socket === socket;
  }

  /**
   * Hands the connection of an upgrade over. The exchange lasts until it is closed.
   *
   * @throws Error if the caller has disconnected, or a reply was sent.
   */
  accept(): AcceptedUpgrade {
    if (!this.#head || !this.#writer.pending) throw new Error('the connection can no longer be upgraded');
    this.#status = 101;
    this.#writer.release(this.#socket);
    return { request: this.req, socket: this.#socket, head: this.#head };
  }

  /**
   * Sends the reply; resolves when it has been written, or when the caller disconnects.
   *
   * @throws Error, with nothing sent, for an invalid header or a body that cannot be serialised.
   */
  async reply({ status, headers, body, keepAlive }: HttpReply): Promise<void> {
    if (body === undefined) return this.#send(status, undefined, headers, '');
    if (typeof body === 'string') return this.#send(status, TEXT_TYPE, headers, body);
    if (body instanceof Uint8Array) return this.#send(status, BINARY_TYPE, headers, body);
    if (!(Symbol.asyncIterator in body)) return this.#send(status, JSON_TYPE, headers, JSON.stringify(body));
    if (this.#writer.pending) this.#status = status;
    try {
      await this.#writer.stream(status, this.#merged(undefined, headers), body, keepAlive);
    } catch (error) {
      if (this.#writer.pending) throw error;
      this.#logError(error, 'a streamed reply failed');
      this.destroy('agent_error');
    }
  }

  /**
   * Sends an error reply: an `HttpError` as it is, any other error as a generic 500. The details of
   * the latter are logged.
   */
  fail(error: unknown): void {
    if (this.#status === 101) {
      this.#failUpgraded(error);
      return;
    }
    if (!(error instanceof HttpError)) this.#logError(error, 'a request failed with an unexpected error');
    try {
      this.#sendError(error instanceof HttpError ? error : internalError());
    } catch (fault) {
      this.#logError(fault, 'a route threw an HttpError with invalid headers');
      this.#sendError(internalError());
    }
  }

  /** The connection was handed over and its owner failed: no reply can be sent. */
  #failUpgraded(error: unknown): void {
    this.#logError(error, 'an upgraded connection failed');
    this.destroy('agent_error');
  }

  /**
   * Ends the exchange because its connection is unusable: sends the error if no reply was started,
   * else destroys the connection.
   */
  abort(error: HttpError): void {
    this.cancel(error);
    this.headers.connection = 'close';
    if (this.#writer.pending) this.fail(error);
    else this.destroy('cancelled_by_client');
  }

  /** Aborts the work for this exchange. A reply can still be sent. */
  cancel(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Called by the writer. */
  onDisconnect(): void {
    this.cancel(DISCONNECTED);
  }

  /** Called by the writer. */
  onEnd(): void {
    this.#body?.end();
    this.#reply?.end();
    this.#dependencies.onEnd(this);
  }

  /** Destroys the connection. */
  destroy(outcome: ReplyOutcome): void {
    this.#writer.destroy(outcome);
  }

  #sendError(error: HttpError): void {
    const { status, headers, code } = error;
    if (this.#writer.pending) this.#errorCode = code;
    this.#send(status, JSON_TYPE, headers, this.#dependencies.errors.format(error));
  }

  #send(status: number, type: string | undefined, headers: HttpReply['headers'], body: string | Uint8Array): void {
    if (!this.#writer.pending) return;
    const bytes = Buffer.byteLength(body);
    if (bytes > UNCOUNTED) this.#countReply(bytes);
    this.#status = status;
    this.#writer.send(status, this.#merged(type, headers), body, bytes);
  }

  /** Counts the memory of the reply, until the exchange ends. @throws HttpError 503 */
  #countReply(bytes: number): void {
    const { replies } = this.#dependencies.memory;
    this.#reply ??= this.#lease(replies);
    if (!this.#reply.grow(bytes)) throw tooManyReplies(replies.setting);
  }

  /**
   * A new object, to which the writer adds. @param type the content type, unless `headers` has
   * another.
   */
  #merged(type: string | undefined, headers: HttpReply['headers']): Record<string, string> {
    const merged = { ...this.headers };
    if (type !== undefined) merged['content-type'] = type;
    Object.assign(merged, headers);
    if (this.#dependencies.draining) merged.connection = 'close';
    return merged;
  }

  /** Errors after a disconnect are expected, and logged at debug only. */
  #logError(error: unknown, message: string): void {
    const level = this.signal.aborted ? 'debug' : 'error';
    this.#dependencies.log[level]({ err: error, request_id: this.requestId, route: this.match?.route.path }, message);
  }
}
