import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock, Logger, Principal } from '@plugboard/kernel';
import { Account, type Budget, type Budgets } from '@plugboard/kernel/contracts';
import type { Context } from 'koa';
import { networkOf } from '../limits/caller.js';
import { splitTarget } from '../routing/request-target.js';
import type { RouteMatch } from '../routing/route-table.js';
import type { HttpReply, HttpRoute } from '../routing/routes.js';
import type { AcceptedUpgrade } from '../routing/upgrades.js';
import type { ActiveMember } from './active-set.js';
import type { HttpOperation } from './http-channel.js';

/** Fields of a line of the access log. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** How a reply ended, if not normally. */
export type ReplyOutcome = 'cancelled_by_client' | 'timeout' | 'agent_error' | 'draining';

/** What an exchange needs from the server. */
export interface ExchangeDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly memory: Budget;
  readonly time: Budgets['time'];
  /** Called once, when the reply has been sent or the connection is closed. */
  onEnd(exchange: Exchange): void;
}

const DISCONNECTED = new Error('the caller disconnected');

/**
 * One request, from Node's event to the end of its reply.
 *
 * 1. It begins before the body is read. The steps of `HttpApplication` set the route and the
 *    principal.
 * 2. `Replies` writes the reply. If middleware of other plugins may change it, or it is an error,
 *    `Replies` puts it on Koa's context, and Koa sends it.
 * 3. It ends when the reply has been sent or the connection is closed. Then its line is written to
 *    the access log.
 */
export class Exchange implements ActiveMember {
  readonly ctx: Context;
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
  /** Whether middleware of other plugins sees its reply on the context, and may change it. */
  readonly isWrapped: boolean;
  /** Among the exchanges in progress. */
  index = -1;
  match: RouteMatch | undefined;
  /** The route of the path: that of `match`, or one for another method. */
  route: HttpRoute | undefined;
  principal: Principal | undefined;
  /** What the route replied. */
  reply: HttpReply | undefined;
  /** Whether the body has been read to its end, which Node may report later. */
  bodyIsRead = false;
  /** The code of the error reply, if it has one. */
  errorCode: string | undefined;
  /** When the head of the reply was written, on the clock's monotonic scale. */
  headAt: number | undefined;
  readonly logFields: Record<string, LogFields[string]> = {};
  /** Present if the channel `plugboard.http` has subscribers. */
  operation: HttpOperation | undefined;
  /** How the reply ended, if not normally. */
  outcome: ReplyOutcome | undefined;
  isUpgraded = false;
  hasEnded = false;

  readonly #res: ServerResponse;
  readonly #socket: Socket;
  readonly #bytesBefore: number;
  readonly #dependencies: ExchangeDependencies;
  readonly #abort = new AbortController();
  readonly #head: Buffer | undefined;
  #draining: AbortController | undefined;
  #account: Account | undefined;
  #leaveAccount: (() => void) | undefined;

  /** @param head bytes received after the head of an upgrade request; undefined for any other. */
  constructor(ctx: Context, requestId: string, dependencies: ExchangeDependencies, head: Buffer | undefined, isWrapped: boolean) {
    const { req, res } = ctx;
    this.ctx = ctx;
    this.req = req;
    this.requestId = requestId;
    this.acceptedAt = dependencies.clock.monotonic();
    this.method = req.method ?? '';
    [this.path, this.query] = splitTarget(req.url ?? '');
    this.address = req.socket.remoteAddress ?? ''; // unknown once the connection is closed
    this.isWrapped = isWrapped;
    this.#res = res;
    this.#socket = req.socket;
    this.#head = head;
    this.#bytesBefore = req.socket.bytesWritten;
    this.#dependencies = dependencies;
    res.on('close', () => this.#onClose());
  }

  /** Aborted when the caller disconnects too early, or when the server must stop. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Whether the request asks for an upgrade that the server offers. */
  get isUpgrade(): boolean {
    return this.#head !== undefined;
  }

  /** Whether a reply can still be sent. */
  get isPending(): boolean {
    return !this.isUpgraded && !this.hasEnded && !this.#res.headersSent;
  }

  /** 0 if there was no reply. */
  get status(): number {
    if (this.isUpgraded) return 101;
    return this.#res.headersSent ? this.#res.statusCode : 0;
  }

  /** Bytes sent, including the head. */
  get bytesOut(): number {
    return this.#socket.bytesWritten - this.#bytesBefore;
  }

  /** Adds fields to the access log line. */
  note(fields: LogFields): void {
    Object.assign(this.logFields, fields);
  }

  isOn(socket: unknown): boolean {
    return this.#socket === socket;
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

  /** What the request takes: the memory of its body, its turn and its reply. */
  get account(): Account {
    if (!this.#account) {
      this.#account = this.openAccount();
      if (!this.hasEnded) this.#leaveAccount = this.#account.hold();
    }
    return this.#account;
  }

  /** An account of the caller. */
  openAccount(): Account {
    const { memory, time } = this.#dependencies;
    return new Account(memory, this.principal, networkOf(this.address), time);
  }

  /**
   * Hands the connection of an upgrade over. The exchange lasts until it is closed. The new owner
   * sees the end first, so that it can add to the access log.
   *
   * @throws Error if the caller has disconnected, or a reply was sent.
   */
  accept(): AcceptedUpgrade {
    if (!this.#head || !this.isPending) throw new Error('the connection can no longer be upgraded');
    this.isUpgraded = true;
    this.headAt = this.#dependencies.clock.monotonic();
    this.ctx.respond = false;
    this.operation?.end({ status: this.status, outcome: 'ok', project: this.principal?.project });
    this.#res.detachSocket(this.#socket);
    this.#socket.once('close', () => setImmediate(() => this.#onClose()));
    return { request: this.req, socket: this.#socket, head: this.#head };
  }

  /** Aborts the work for this exchange. A reply can still be sent. */
  cancel(reason: Error): void {
    this.#abort.abort(reason);
  }

  /** Destroys the connection: the caller must not take a partial reply for a complete one. */
  destroy(outcome: ReplyOutcome): void {
    this.outcome ??= outcome;
    if (this.isUpgraded) this.#socket.destroy();
    else this.#res.destroy();
  }

  /** Ends the exchange. Its reply is complete, or its connection is closed. */
  end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.#leaveAccount?.();
    this.#dependencies.onEnd(this);
  }

  /** Errors after a disconnect are expected, and logged at debug only. */
  logError(error: unknown, message: string): void {
    const level = this.signal.aborted ? 'debug' : 'error';
    this.#dependencies.log[level]({ err: error, request_id: this.requestId, route: this.match?.route.path }, message);
  }

  #onClose(): void {
    if (this.hasEnded) return;
    if (!this.#res.writableEnded) {
      if (!this.isUpgraded) this.outcome ??= 'cancelled_by_client';
      this.cancel(DISCONNECTED);
    }
    this.end();
  }
}
