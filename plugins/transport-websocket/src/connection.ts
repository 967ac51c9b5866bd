import type { Socket } from 'node:net';
import type { Clock, IdSource, Logger, Principal } from '@plugboard/kernel';
import { failureOf, missingScope, TurnError } from '@plugboard/kernel/contracts';
import { ConnectionMemory, type LiveResponse, type ResponseRequest, type ResponseService } from '@plugboard/open-responses';
import { invalidRequest, serviceError, turnFailureError, unavailable } from '@plugboard/openai-protocol';
import { HttpError, type UpgradeRequest } from '@plugboard/transport-http';
import type { RawData, WebSocket } from 'ws';
import { CLOSE, type CloseReason } from './close-codes.js';
import type { ConnectionLimits } from './connection-limits.js';
import type { ConnectionOptions } from './connection-options.js';
import { errorEvent } from './error-event.js';
import { Lanes, limited } from './lanes.js';
import { type ClientMessage, InvalidMessage, parseMessage } from './message.js';
import { Outbox } from './outbox.js';

/** Invalid messages within a minute that close the connection. */
const MOST_INVALID = 10;
const MINUTE = 60_000;
/** How long a connection may be open without a response (ms). */
const IDLE = 30 * MINUTE;
/** What a pong may take beyond the second ping (ms). */
const PONG_GRACE = 5_000;
/** What a client has to answer a close frame with its own (ms). */
const CLOSE_GRACE = 1_000;

export interface ConnectionDependencies {
  readonly limits: ConnectionLimits;
  service(): ResponseService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/**
 * One client on a WebSocket.
 *
 * 1. Messages are read one by one. A bad one is answered with an `error` event; ten within a minute close the connection.
 * 2. `response.create` is authenticated again, waits for the earlier responses of its lane, and runs. Its events are sent as they come; a slow client slows its responses.
 * 3. When the client has gone, its responses lose a reader: those that are not stored are cancelled.
 */
export class Connection {
  readonly #ws: WebSocket;
  readonly #upgrade: UpgradeRequest;
  readonly #options: ConnectionOptions;
  readonly #dependencies: ConnectionDependencies;
  readonly #outbox: Outbox;
  readonly #lanes = new Lanes();
  readonly #memory = new ConnectionMemory();
  readonly #openedAt: number;
  /** The responses that it created or resumed, while they run. */
  readonly #live = new Map<string, LiveResponse>();
  readonly #onClose: (() => void)[] = [];
  #invalid: number[] = [];
  #lastHeard: number;
  #lastPing: number;
  #lastUse: number;
  #stalledFor = 0;
  #lastTick: number;
  #checking = false;
  #closed = false;

  constructor(
    ws: WebSocket,
    socket: Socket,
    upgrade: UpgradeRequest,
    options: ConnectionOptions,
    dependencies: ConnectionDependencies,
  ) {
    this.#ws = ws;
    this.#upgrade = upgrade;
    this.#options = options;
    this.#dependencies = dependencies;
    this.#outbox = new Outbox(ws, socket, dependencies.limits.maxBuffered);
    this.#openedAt = dependencies.clock.monotonic();
    this.#lastHeard = this.#openedAt;
    this.#lastPing = this.#openedAt;
    this.#lastUse = this.#openedAt;
    this.#lastTick = this.#openedAt;
    ws.on('message', (data, isBinary) => this.#receive(data, isBinary));
    ws.on('pong', () => this.#heard());
    ws.on('error', (error) => dependencies.log.debug({ err: error, request_id: upgrade.requestId }, 'a WebSocket failed'));
    ws.once('close', (code) => this.#end(code));
    upgrade.draining.addEventListener('abort', () => this.#closeWhenIdle(), { once: true });
    upgrade.signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  onClose(listener: () => void): void {
    if (this.#closed) listener();
    else this.#onClose.push(listener);
  }

  /** Looks at how the connection is doing. Called about once a second. @param now on the clock's monotonic scale. */
  tick(now: number): void {
    const { pingInterval, stallTimeout } = this.#dependencies.limits;
    this.#stalledFor = this.#outbox.isStalled() ? this.#stalledFor + now - this.#lastTick : 0;
    this.#lastTick = now;
    if (this.#stalledFor >= stallTimeout) this.#close(CLOSE.slowConsumer);
    else if (now - this.#lastHeard >= 2 * pingInterval + PONG_GRACE) this.#ws.terminate();
    else if (this.#lanes.inFlight === 0 && this.#isTooOld(now)) this.#close(CLOSE.maxAge);
    else if (this.#lanes.inFlight === 0 && now - this.#lastUse >= IDLE) this.#close(CLOSE.idle);
    else if (now - this.#lastPing >= pingInterval && this.#ws.readyState === this.#ws.OPEN) {
      this.#lastPing = now;
      this.#ws.ping();
    }
  }

  /** Closes the connection if its credential is no longer valid. */
  recheck(): void {
    if (this.#upgrade.open || this.#checking) return;
    this.#checking = true;
    this.#upgrade
      .authenticate()
      .catch((error) => this.#refuseCredential(error))
      .finally(() => {
        this.#checking = false;
      });
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#heard();
    if (isBinary) {
      this.#close(CLOSE.textOnly);
      return;
    }
    try {
      this.#handle(parseMessage(String(data)));
    } catch (error) {
      this.#refuse(error);
    }
  }

  #handle(message: ClientMessage): void {
    if (message.kind === 'create') this.#enqueue(message.request);
    else if (message.kind === 'cancel') this.#cancel(message.id);
    else if (message.kind === 'resume') this.#resume(message.id, message.after);
    else this.#outbox.send([JSON.stringify({ type: 'svc:pong', id: message.id })]);
  }

  #heard(): void {
    this.#lastHeard = this.#dependencies.clock.monotonic();
  }

  /** An invalid message. */
  #refuse(error: unknown): void {
    if (!(error instanceof InvalidMessage)) this.#logError(error, 'a message could not be read');
    const now = this.#dependencies.clock.monotonic();
    this.#outbox.send([error instanceof InvalidMessage ? errorEvent(error.reason, error.streamId) : errorEvent(error)]);
    this.#invalid = [...this.#invalid.filter((at) => now - at < MINUTE), now];
    if (this.#invalid.length >= MOST_INVALID) this.#close(CLOSE.tooManyErrors);
  }

  #enqueue(request: ResponseRequest): void {
    this.#lastUse = this.#dependencies.clock.monotonic();
    try {
      if (this.#upgrade.draining.aborted) throw drainingError();
      if (this.#isTooOld(this.#lastUse)) throw tooOld();
      this.#lanes.run(
        request.stream_id ?? '',
        () => this.#create(request),
        () => this.#onIdle(),
      );
    } catch (error) {
      this.#outbox.send([errorEvent(error, request.stream_id)]);
    }
  }

  /** Runs a response to its end. Never rejects. */
  async #create(request: ResponseRequest): Promise<void> {
    if (this.#closed) return;
    try {
      const principal = await this.#authenticated();
      await this.#run(request, principal);
    } catch (error) {
      if (await this.#refuseCredential(error, request.stream_id)) return;
      const refusal = error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
      if (!(refusal instanceof HttpError)) this.#logError(refusal, 'a response could not be created');
      this.#outbox.send([errorEvent(refusal, request.stream_id)]);
    }
  }

  /** The connection's token may have been revoked, or lost rights, since it was opened. @throws HttpError */
  async #authenticated(): Promise<Principal> {
    const principal = await this.#upgrade.authenticate();
    const missing = missingScope(principal, ['chat']);
    if (missing !== undefined) throw serviceError(403, `This API token lacks the scope \`${missing}\`.`);
    this.#upgrade.countRequest();
    return principal;
  }

  async #run(request: ResponseRequest, principal: Principal): Promise<void> {
    const { clock, ids, service } = this.#dependencies;
    const began = clock.monotonic();
    const requestId = `req_${ids.hex(32)}`;
    const planned = await service().plan(request, {
      principal,
      requestId,
      defaultModel: this.#options.model,
      incremental: true,
      resumable: true,
      extensions: this.#options.extensions,
      connection: { memory: this.#memory, isConversation: this.#options.isConversation },
    });
    const live = await planned.create();
    this.#live.set(live.id, live);
    try {
      const refused = await live.open();
      if (refused) throw turnFailureError(planned.failure(refused), planned.sessionKey !== undefined);
      if (this.#upgrade.signal.aborted) this.#stop();
      await this.#pump(live, 0);
    } finally {
      this.#live.delete(live.id);
      this.#logResponse(live, planned.target.name, principal, requestId, clock.monotonic() - began);
    }
  }

  /** Sends the events of a response until it ends or the client has gone. @returns false if the events are no longer kept. */
  async #pump(live: LiveResponse, from: number): Promise<boolean> {
    const reader = live.read(from);
    if (!reader) return false;
    const leave = () => reader.leave();
    if (this.#closed) leave();
    this.#onClose.push(leave);
    for (let events = await reader.next(); events !== undefined; events = await reader.next()) {
      this.#outbox.send(events);
      reader.pressed = this.#outbox.pressed;
      const room = this.#outbox.room();
      if (room) await room;
    }
    const at = this.#onClose.indexOf(leave);
    if (at >= 0) this.#onClose.splice(at, 1);
    return true;
  }

  #cancel(id: string): void {
    const live = this.#live.get(id) ?? this.#dependencies.service().live.find(id, this.#upgrade.principal);
    live?.cancel();
  }

  #resume(id: string, after: number): void {
    const live = this.#dependencies.service().live.find(id, this.#upgrade.principal);
    const resume = async () => {
      if (!live) return this.#refuseResume(id);
      if (!(await this.#pump(live, after + 1))) this.#outbox.send([errorEvent(expired(id))]);
    };
    resume().catch((error) => this.#logError(error, 'a response could not be resumed'));
  }

  /** There are no events to go on with: because there is no such response, or because it ended too long ago. */
  async #refuseResume(id: string): Promise<void> {
    const stored = await this.#dependencies.service().stored.get(id, this.#upgrade.principal);
    this.#outbox.send([errorEvent(stored ? expired(id) : notFound(id))]);
  }

  /** @returns whether the error says that the credential is no longer valid. */
  async #refuseCredential(error: unknown, streamId?: string): Promise<boolean> {
    if (!(error instanceof HttpError) || error.status !== 401) return false;
    this.#outbox.send([errorEvent(error, streamId)]);
    this.#close(CLOSE.tokenRevoked);
    return true;
  }

  #isTooOld(now: number): boolean {
    return now - this.#openedAt >= this.#dependencies.limits.maxAge;
  }

  #onIdle(): void {
    this.#lastUse = this.#dependencies.clock.monotonic();
    if (this.#upgrade.draining.aborted) this.#close(CLOSE.restart);
  }

  #closeWhenIdle(): void {
    if (this.#lanes.inFlight === 0) this.#close(CLOSE.restart);
  }

  /** The drain time of a stopping server is over, or the client has gone. */
  #stop(): void {
    const { reason } = this.#upgrade.signal;
    if (reason instanceof TurnError) for (const live of this.#live.values()) live.cancel(reason);
  }

  #close([code, reason]: CloseReason): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#ws.close(code, reason);
    this.#dependencies.clock.after(CLOSE_GRACE, () => this.#ws.terminate());
  }

  #end(code: number): void {
    this.#closed = true;
    this.#upgrade.note({ close_code: code });
    for (const listener of this.#onClose.splice(0)) listener();
  }

  /** One line per response, like the line of a request. */
  #logResponse(live: LiveResponse, agent: string, principal: Principal, requestId: string, duration: number): void {
    this.#dependencies.log.info(
      {
        request_id: requestId,
        connection_id: this.#upgrade.requestId,
        response_id: live.id,
        agent,
        duration_ms: Math.round(duration * 100) / 100,
        project: principal.project,
        token_id: principal.tokenId,
        token_name: principal.token,
        status: live.end?.outcome.status,
        ...live.facts.fields(),
      },
      'response',
    );
  }

  #logError(error: unknown, message: string): void {
    this.#dependencies.log.error({ err: error, connection_id: this.#upgrade.requestId }, message);
  }
}

function drainingError(): HttpError {
  return unavailable('draining', 'The server is about to stop and takes no new work. Connect again in a few seconds.', {
    'retry-after': '5',
  });
}

function tooOld(): HttpError {
  return limited(
    'websocket_connection_limit_reached',
    'This connection is too old for a new response. Open a new one to continue.',
  );
}

function notFound(id: string): HttpError {
  return invalidRequest(`Response with id '${id.slice(0, 64)}' not found.`, {
    status: 404,
    param: 'response_id',
    code: 'response_not_found',
  });
}

function expired(id: string): HttpError {
  return invalidRequest(`The events of response '${id}' are no longer kept. Get the response itself: GET /v1/responses/${id}.`, {
    status: 410,
    param: 'starting_after',
    code: 'response_events_expired',
  });
}
