import type { Clock, IdSource, Logger, Principal } from '@plugboard/kernel';
import { failureOf, TurnError } from '@plugboard/kernel/contracts';
import type { ConnectionMemory, LiveResponse, ResponseRequest, ResponseService } from '@plugboard/open-responses';
import { turnFailureError } from '@plugboard/openai-protocol';
import { HttpError } from '@plugboard/transport-http';
import { errorEvent } from '../messages/error-event.js';
import { eventAhead, eventsExpired, responseNotFound } from '../messages/refusals.js';
import type { Caller } from './caller.js';
import type { ConnectionOptions } from './connection-options.js';
import type { Inbox } from './inbox.js';
import { Lanes } from './lanes.js';
import type { Outbox } from './outbox.js';

interface ConnectionResponsesOptions {
  readonly caller: Caller;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly options: ConnectionOptions;
  /** For log lines. */
  readonly connectionId: string;
  service(): ResponseService;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
  /** Called when the last response in flight has ended. */
  onIdle(): void;
  /** The credential is no longer valid. The client was informed. */
  onRevoked(): void;
}

/**
 * The responses of one connection: creates, cancels and resumes them, and sends their events at the
 * pace of the client.
 */
export class ConnectionResponses {
  readonly #options: ConnectionResponsesOptions;
  readonly #lanes: Lanes;
  readonly #memory: ConnectionMemory;
  /** Created here and running. */
  readonly #live = new Map<string, LiveResponse>();
  /** Ends the reading of each response that is being sent. */
  readonly #leaving = new Set<() => void>();
  #closed = false;
  #stopped: TurnError | undefined;

  constructor(options: ConnectionResponsesOptions) {
    this.#options = options;
    this.#lanes = new Lanes(() => options.onIdle());
    this.#memory = options.service().remember();
  }

  /** Responses that run, wait, or are being resumed. */
  get inFlight(): number {
    return this.#lanes.inFlight;
  }

  /**
   * Creates a response when the earlier ones of its lane have ended.
   *
   * @param size of the message with the request.
   * @throws HttpError 429, or 503 without memory for the request.
   */
  create(request: ResponseRequest, size: number): void {
    const release = this.#options.inbox.hold(size);
    try {
      this.#lanes.run(request.stream_id ?? '', () => this.#create(request).finally(release));
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Cancels a response that the caller can reach; does nothing for any other id. */
  cancel(id: string): void {
    const live = this.#live.get(id) ?? this.#options.service().live.find(id, this.#options.caller.principal);
    live?.cancel();
  }

  /** Sends the events after a number, and those to come. @throws HttpError 429 */
  resume(id: string, after: number): void {
    this.#lanes.runBeside(async () => {
      try {
        await this.#resume(id, after);
      } catch (error) {
        if (!(error instanceof HttpError)) this.#logError(error, 'a response could not be resumed');
        this.#options.outbox.reply(errorEvent(error));
      }
    });
  }

  /** The drain time is over: aborts them. */
  stop(reason: TurnError): void {
    this.#stopped = reason;
    for (const live of this.#live.values()) live.cancel(reason);
  }

  /**
   * The client has disconnected. Each response loses a reader, and is cancelled unless it is
   * stored.
   */
  leave(): void {
    this.#closed = true;
    for (const leave of this.#leaving) leave();
    this.#memory.close();
  }

  /** Runs a response to its end. Never rejects. */
  async #create(request: ResponseRequest): Promise<void> {
    if (this.#closed) return;
    const { caller, outbox } = this.#options;
    try {
      await this.#run(request, await caller.admit());
    } catch (error) {
      const refusal = error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
      if (!(refusal instanceof HttpError)) this.#logError(refusal, 'a response could not be created');
      outbox.reply(errorEvent(refusal, request.stream_id));
      if (refusal instanceof HttpError && refusal.status === 401) this.#options.onRevoked();
    }
  }

  async #run(request: ResponseRequest, principal: Principal): Promise<void> {
    const { caller, clock, ids, service, options } = this.#options;
    const began = clock.monotonic();
    const requestId = `req_${ids.hex(32)}`;
    const planned = await service().plan(request, {
      principal,
      requestId,
      defaultModel: options.model,
      incremental: true,
      resumable: true,
      extensions: options.extensions,
      memory: caller.leaseReply(),
      connection: { memory: this.#memory, isConversation: options.isConversation },
    });
    if (this.#closed) return;
    const live = await planned.create();
    this.#live.set(live.id, live);
    try {
      // A stored response waits for its client to come back, also when it is left before its first
      // event.
      const leave = () => {
        if (!live.stored) live.abandon();
      };
      this.#leaving.add(leave);
      if (this.#closed) leave();
      if (this.#stopped) live.cancel(this.#stopped);
      const refused = await live.open();
      this.#leaving.delete(leave);
      if (refused) throw turnFailureError(planned.failure(refused), planned.sessionKey !== undefined);
      await this.#pump(live, 0);
    } finally {
      this.#live.delete(live.id);
      this.#logResponse(live, planned.target.name, principal, requestId, clock.monotonic() - began);
    }
  }

  async #resume(id: string, after: number): Promise<void> {
    const { service, caller } = this.#options;
    const live = service().live.find(id, caller.principal);
    if (!live) throw (await service().stored.get(id, caller.principal)) ? eventsExpired(id) : responseNotFound(id);
    if (after >= live.nextSequence) throw eventAhead(after, live.nextSequence - 1);
    if (!(await this.#pump(live, after + 1))) throw eventsExpired(id);
  }

  /**
   * Sends the events of a response until it ends or the client disconnects. @returns false if the
   * events are no longer kept.
   */
  async #pump(live: LiveResponse, from: number): Promise<boolean> {
    const { outbox } = this.#options;
    const reader = live.read(from);
    if (!reader) return false;
    const leave = () => reader.leave();
    this.#leaving.add(leave);
    if (this.#closed) leave();
    for (;;) {
      for (let room = outbox.room(); room; room = outbox.room()) await room;
      const events = await reader.next();
      if (events === undefined) break;
      outbox.send(events);
      reader.pressed = outbox.pressed;
    }
    this.#leaving.delete(leave);
    reader.leave();
    return true;
  }

  /** One line per response, like the line of a request. */
  #logResponse(live: LiveResponse, agent: string, principal: Principal, requestId: string, duration: number): void {
    this.#options.log.info(
      {
        request_id: requestId,
        connection_id: this.#options.connectionId,
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
    this.#options.log.error({ err: error, connection_id: this.#options.connectionId }, message);
  }
}
