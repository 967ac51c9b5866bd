import type { Socket } from 'node:net';
import type { Clock, IdSource, Logger } from '@plugboard/kernel';
import { type Account, TurnError } from '@plugboard/kernel/contracts';
import type { ResponseRequest, ResponseService } from '@plugboard/open-responses';
import { HttpError, type UpgradeRequest } from '@plugboard/transport-http';
import type { RawData, WebSocket } from 'ws';
import { errorEvent } from '../messages/error-event.js';
import { type ClientMessage, InvalidMessage, parseMessage } from '../messages/message.js';
import { draining, overloaded, tooOld } from '../messages/refusals.js';
import { Caller } from './caller.js';
import { CLOSE, type CloseReason } from './close-codes.js';
import type { ConnectionLimits } from './connection-limits.js';
import type { ConnectionQuery } from './connection-query.js';
import { ConnectionResponses } from './connection-responses.js';
import { Heartbeat } from './heartbeat.js';
import { type Arrived, Inbox } from './inbox.js';
import { Outbox } from './outbox.js';

/** The number of invalid messages within a minute that closes the connection. */
const MAX_INVALID = 10;
const MINUTE = 60_000;
/** Milliseconds that a client may take to answer a close frame with its own. */
const CLOSE_GRACE = 1_000;

interface LiveConnectionDependencies {
  readonly limits: ConnectionLimits;
  readonly service: ResponseService;
  /** The key of the transport's entry. */
  readonly transport: string;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/**
 * One client on a WebSocket.
 *
 * 1. It reads messages one by one, and answers an invalid one with an `error` event. Ten of them
 *    within a minute close the connection.
 * 2. For `response.create` it authenticates the caller again, waits for the earlier responses of
 *    the stream, and runs the response. Events are sent as they come; a slow client slows its
 *    responses.
 * 3. When the client disconnects, its responses lose a reader, and those that are not stored are
 *    cancelled.
 */
export class LiveConnection {
  readonly #ws: WebSocket;
  readonly #upgrade: UpgradeRequest;
  readonly #dependencies: LiveConnectionDependencies;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #caller: Caller;
  readonly #heartbeat: Heartbeat;
  readonly #responses: ConnectionResponses;
  #onClose: () => void = () => {};
  /** Resolves when the messages that wait for their turn have been handled. */
  #before: Promise<void> | undefined;
  #invalid: number[] = [];
  #checking = false;
  /** The entry was removed: the connection closes when its responses have ended. */
  #leaving = false;

  constructor(
    ws: WebSocket,
    socket: Socket,
    upgrade: UpgradeRequest,
    query: ConnectionQuery,
    dependencies: LiveConnectionDependencies,
  ) {
    const { limits, clock, log } = dependencies;
    this.#ws = ws;
    this.#upgrade = upgrade;
    this.#dependencies = dependencies;
    this.#inbox = new Inbox(() => upgrade.openAccount());
    this.#outbox = new Outbox(ws, socket, limits.maxBuffered, () => dependencies.ids.hex(16));
    this.#caller = new Caller(upgrade);
    this.#heartbeat = new Heartbeat(limits, clock.monotonic());
    this.#responses = new ConnectionResponses({
      ...dependencies,
      caller: this.#caller,
      outbox: this.#outbox,
      query,
      maxMessage: limits.maxFrameSize,
      maxBehind: limits.maxBuffered,
      connectionId: upgrade.requestId,
      onIdle: () => this.#onIdle(),
      onRevoked: () => this.#close(CLOSE.tokenRevoked),
    });
    socket.prependListener('data', (data: Buffer) => this.#count(data)); // before `ws` reads it
    ws.on('message', (data, isBinary) => this.#arrive(data, isBinary));
    ws.on('ping', (data) => this.#inbox.controlFrame(data));
    ws.on('pong', (data) => {
      this.#inbox.controlFrame(data);
      this.#heartbeat.heard(clock.monotonic());
      this.#outbox.acknowledge(String(data));
    });
    ws.on('error', (error) => log.debug({ err: error, request_id: upgrade.requestId }, 'a WebSocket failed'));
    ws.once('close', (code) => this.#end(code));
    upgrade.draining.addEventListener('abort', () => this.#closeWhenIdle(), { once: true });
    upgrade.signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  /** @param listener called once, when the connection has closed. */
  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  /** Called about once a second. @param now on the clock's monotonic scale. */
  tick(now: number): void {
    if (this.#responses.isWatching) this.#heartbeat.used(now);
    const pulse = this.#heartbeat.tick(now, this.#outbox.progress(), this.#responses.inFlight > 0);
    if (pulse === undefined || this.#ws.readyState !== this.#ws.OPEN) return;
    if (pulse === 'ping') this.#ws.ping();
    else if (pulse === 'terminate') this.#ws.terminate();
    else this.#close(pulse);
  }

  /** Closes the connection with 1012 as soon as no response runs. */
  leave(): void {
    this.#leaving = true;
    this.#closeWhenIdle();
  }

  terminate(): void {
    this.#ws.terminate();
  }

  /**
   * Closes the connection if its credential is no longer valid. A failing auth provider closes
   * nothing.
   */
  async recheck(): Promise<void> {
    if (this.#upgrade.open || this.#checking) return;
    this.#checking = true;
    try {
      await this.#caller.authenticate();
      this.#responses.recheck();
    } catch (error) {
      if (!(error instanceof HttpError) || error.status !== 401) return;
      this.#outbox.reply(errorEvent(error));
      this.#close(CLOSE.tokenRevoked);
    } finally {
      this.#checking = false;
    }
  }

  #count(data: Buffer): void {
    const full = this.#ws.readyState === this.#ws.OPEN ? this.#inbox.arrived(data.length) : undefined;
    if (!full) return;
    this.#outbox.reply(errorEvent(overloaded(full)));
    this.#close(CLOSE.overloaded);
  }

  /** A message is handled when it is the client's turn, and after the messages before it (S-71). */
  #arrive(data: RawData, isBinary: boolean): void {
    const text = String(data);
    const arrived = this.#inbox.messageArrived(Buffer.byteLength(text));
    const receive = () => this.#receive(text, isBinary, arrived);
    const slice = this.#before ? this.#before.then(() => arrived.account.timeSlice()) : arrived.account.timeSlice();
    if (!slice) {
      receive();
      return;
    }
    const received = slice.then(receive);
    this.#before = received;
    void received.then(() => {
      if (this.#before === received) this.#before = undefined;
    });
  }

  #receive(text: string, isBinary: boolean, { account, leave, fits }: Arrived): void {
    try {
      if (this.#ws.readyState !== this.#ws.OPEN) return;
      this.#heartbeat.heard(this.#dependencies.clock.monotonic());
      if (isBinary) this.#close(CLOSE.textOnly);
      else if (fits) this.#handle(parseMessage(text, account), account);
      else this.#outbox.reply(errorEvent(overloaded(account)));
    } catch (error) {
      this.#refuse(error);
    } finally {
      leave();
    }
  }

  /** Counts invalid messages. */
  #refuse(error: unknown): void {
    if (!(error instanceof InvalidMessage)) {
      this.#dependencies.log.error({ err: error, connection_id: this.#upgrade.requestId }, 'a message could not be read');
    }
    const now = this.#dependencies.clock.monotonic();
    this.#outbox.reply(error instanceof InvalidMessage ? errorEvent(error.reason, error.streamId) : errorEvent(error));
    this.#invalid = [...this.#invalid.filter((at) => now - at < MINUTE), now];
    if (this.#invalid.length >= MAX_INVALID) this.#close(CLOSE.tooManyErrors);
  }

  #handle(message: ClientMessage, account: Account): void {
    switch (message.kind) {
      case 'create':
        this.#create(message.request, account);
        break;
      case 'cancel':
        void this.#responses.cancel(message.id);
        break;
      case 'resume':
        this.#answering(undefined, () => this.#responses.resume(message.id, message.after, account));
        break;
      case 'watch':
        this.#responses.watch(message.conversation, account);
        break;
      case 'ping':
        this.#outbox.reply(JSON.stringify({ type: 'svc:pong', id: message.id }));
        break;
    }
  }

  #create(request: ResponseRequest, account: Account): void {
    const now = this.#dependencies.clock.monotonic();
    this.#heartbeat.used(now);
    this.#answering(request.stream_id, () => {
      if (this.#upgrade.draining.aborted) throw draining();
      if (this.#heartbeat.isTooOld(now)) throw tooOld();
      this.#responses.create(request, account);
    });
  }

  /** Answers what the work throws with an `error` event. */
  #answering(streamId: string | undefined, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#outbox.reply(errorEvent(error, streamId));
    }
  }

  #onIdle(): void {
    this.#heartbeat.used(this.#dependencies.clock.monotonic());
    if (this.#leaving || this.#upgrade.draining.aborted) this.#close(CLOSE.restart);
  }

  #closeWhenIdle(): void {
    if (this.#responses.inFlight === 0) this.#close(CLOSE.restart);
  }

  /**
   * The drain time of a stopping server is over. `close` follows once the client has disconnected.
   */
  #stop(): void {
    const { reason } = this.#upgrade.signal;
    if (reason instanceof TurnError) this.#responses.stop(reason);
  }

  #close([code, reason]: CloseReason): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#ws.close(code, reason);
    this.#dependencies.clock.after(CLOSE_GRACE, () => this.#ws.terminate());
  }

  #end(code: number): void {
    this.#upgrade.note({ close_code: code });
    this.#inbox.close();
    this.#responses.leave();
    this.#onClose();
  }
}
