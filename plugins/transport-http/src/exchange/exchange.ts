import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Logger, Principal } from '@plugboard/kernel';
import type { ErrorBodies } from '../errors/error-format.js';
import { HttpError } from '../errors/http-error.js';
import { internalError } from '../errors/refusals.js';
import { splitTarget } from '../routing/request-target.js';
import type { RouteMatch } from '../routing/route-table.js';
import type { HttpReply } from '../routing/routes.js';
import { type Ending, type ReplyWatcher, ResponseWriter } from './response-writer.js';

export type Facts = Readonly<Record<string, string | number | boolean | undefined>>;

/** What an exchange stands in. */
export interface Surroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly errors: ErrorBodies;
  /** Whether connections are to be closed after their reply. */
  readonly draining: boolean;
  /** Called once, when the connection has taken the reply or is gone. */
  over(exchange: Exchange): void;
}

const CALLER_GONE = new Error('the caller has gone');
const JSON_TYPE = 'application/json; charset=utf-8';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/**
 * One request and its one reply.
 *
 * 1. It begins when Node hands the request over; nothing of the body has been read then.
 * 2. The middleware finds the route and the principal, and notes them here.
 * 3. `reply` or `refuse` answers. Only the first answer counts.
 * 4. It is over when the connection has taken the reply, or is gone.
 */
export class Exchange implements ReplyWatcher {
  readonly req: IncomingMessage;
  readonly requestId: string;
  /** On the clock's monotonic scale. */
  readonly acceptedAt: number;
  readonly method: string;
  /** As it was sent, without the query. */
  readonly path: string;
  /** Without its question mark. */
  readonly query: string;
  /** What the reply carries whatever it is, a refusal too. Middleware adds to it before there is one. */
  readonly headers: Record<string, string>;
  match: RouteMatch | undefined;
  principal: Principal | undefined;

  readonly #socket: Socket;
  readonly #bytesBefore: number;
  readonly #surroundings: Surroundings;
  readonly #writer: ResponseWriter;
  readonly #caller = new AbortController();
  #facts: Facts = {};
  #status = 0;
  #address: string | undefined;
  #errorCode: string | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, requestId: string, surroundings: Surroundings) {
    this.req = req;
    this.requestId = requestId;
    this.acceptedAt = surroundings.clock.monotonic();
    this.method = req.method ?? '';
    [this.path, this.query] = splitTarget(req.url ?? '');
    this.headers = { 'x-request-id': requestId, 'x-content-type-options': 'nosniff' };
    this.#socket = req.socket;
    this.#bytesBefore = req.socket.bytesWritten;
    this.#surroundings = surroundings;
    this.#writer = new ResponseWriter(req, res, surroundings.clock, this);
  }

  /** Aborted when the caller has gone before its reply was whole, or the server can wait for it no longer. */
  get signal(): AbortSignal {
    return this.#caller.signal;
  }

  /** Facts for the access log. */
  note(facts: Facts): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  get facts(): Facts {
    return this.#facts;
  }

  /** 0 where there was no reply. */
  get status(): number {
    return this.#status;
  }

  /** Where the request came from, for one that was answered with an error: a proxy's address, where there is one between. */
  get address(): string | undefined {
    return this.#address;
  }

  /** The code of the error that was answered with, where it has one. */
  get errorCode(): string | undefined {
    return this.#errorCode;
  }

  /** How it ended, where the status does not tell. */
  get ending(): Ending | undefined {
    return this.#writer.ending;
  }

  /** When the head of the reply was sent, on the clock's monotonic scale. */
  get headAt(): number | undefined {
    return this.#writer.headAt;
  }

  /** Head included. */
  get bytesOut(): number {
    return this.#socket.bytesWritten - this.#bytesBefore;
  }

  isOn(socket: unknown): boolean {
    return this.#socket === socket;
  }

  /**
   * Answers; ends when the reply was handed over whole, or the caller has gone. @throws Error where it cannot be sent, with
   * nothing sent yet: a header with a line break, an object that is no JSON.
   */
  async reply({ status, headers, body, keepAlive }: HttpReply): Promise<void> {
    if (body === undefined) return this.#send(status, headers, '');
    if (typeof body === 'string') return this.#send(status, { 'content-type': TEXT_TYPE, ...headers }, body);
    if (!(Symbol.asyncIterator in body)) {
      return this.#send(status, { 'content-type': JSON_TYPE, ...headers }, JSON.stringify(body));
    }
    if (this.#writer.waiting) this.#status = status;
    try {
      await this.#writer.stream(status, this.#merged(headers), body, keepAlive);
    } catch (error) {
      if (this.#writer.waiting) throw error;
      this.#defect(error, 'the body of a reply broke off');
      this.cut('agent_error');
    }
  }

  /** Answers with what was thrown: an `HttpError` as it says, anything else as a 500 that leaves the telling to the log. */
  refuse(error: unknown): void {
    if (!(error instanceof HttpError)) this.#defect(error, 'a request failed with what is no HttpError');
    try {
      this.#sendError(error instanceof HttpError ? error : internalError());
    } catch (fault) {
      this.#defect(fault, 'a route threw an HttpError with headers that cannot be sent');
      this.#sendError(internalError());
    }
  }

  /** What came on the connection cannot be read, or did not come in time: says so while that is possible, and ends the work. */
  break(error: HttpError): void {
    this.abandon(error);
    this.headers.connection = 'close';
    if (this.#writer.waiting) this.refuse(error);
    else this.cut('cancelled_by_client');
  }

  /** Tells whoever works for this exchange to come to an end. An answer can still be sent. */
  abandon(reason: Error): void {
    this.#caller.abort(reason);
  }

  /** For the writer. */
  gone(): void {
    this.abandon(CALLER_GONE);
  }

  /** For the writer. */
  over(): void {
    this.#surroundings.over(this);
  }

  /** Destroys the connection. */
  cut(ending: Ending): void {
    this.#writer.cut(ending);
  }

  #sendError(error: HttpError): void {
    const { status, headers, code } = error;
    if (this.#writer.waiting) this.#errorCode = code;
    this.#address = this.#socket.remoteAddress; // a connection that is gone does not tell any more
    this.#send(status, { 'content-type': JSON_TYPE, ...headers }, this.#surroundings.errors.of(error));
  }

  #send(status: number, headers: HttpReply['headers'], body: string): void {
    if (!this.#writer.waiting) return;
    this.#status = status;
    this.#writer.whole(status, this.#merged(headers), body);
  }

  #merged(headers: HttpReply['headers']): Readonly<Record<string, string>> {
    return { ...this.headers, ...headers, ...(this.#surroundings.draining && { connection: 'close' }) };
  }

  /** What happens because the caller has gone is no news. */
  #defect(error: unknown, message: string): void {
    const level = this.signal.aborted ? 'debug' : 'error';
    this.#surroundings.log[level]({ err: error, request_id: this.requestId, route: this.match?.route.path }, message);
  }
}
