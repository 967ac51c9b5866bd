import type { Clock, IdSource, Logger, Principal } from '@plugboard/kernel';
import type { Account, TurnError } from '@plugboard/kernel/contracts';
import type {
  ConnectionMemory,
  LiveResponse,
  PlannedResponse,
  ResponseRequest,
  ResponseService,
  ResumedResponse,
} from '@plugboard/open-responses';
import { isResponseId } from '@plugboard/open-responses';
import { asProtocolError } from '@plugboard/openai-protocol';
import { HttpError } from '@plugboard/transport-http';
import { errorEvent } from '../messages/error-event.js';
import type { Caller } from './caller.js';
import type { ConnectionQuery } from './connection-query.js';
import { ConnectionWatch } from './connection-watch.js';
import type { Outbox } from './outbox.js';
import { ResponseStreams } from './response-streams.js';

interface ConnectionResponsesOptions {
  readonly caller: Caller;
  readonly outbox: Outbox;
  readonly query: ConnectionQuery;
  /** The maximum size of a message, in bytes. */
  readonly maxMessage: number;
  /** Bytes that the client of a watch may be behind. */
  readonly maxBehind: number;
  /** For log lines. */
  readonly connectionId: string;
  /** The key of the transport's entry. */
  readonly transport: string;
  readonly service: ResponseService;
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
  readonly #streams: ResponseStreams;
  readonly #memory: ConnectionMemory;
  /** Responses that were created here and run, by their ids. */
  readonly #running = new Map<string, LiveResponse>();
  /** Responses whose events are being sent, also resumed ones. */
  readonly #sent = new Set<ResumedResponse['response']>();
  /** Ends the reading of each response that is being sent. */
  readonly #leaving = new Set<() => void>();
  readonly #watch: ConnectionWatch;
  #closed = false;
  /** Set when the drain time of the server is over. */
  #stopped: TurnError | undefined;

  constructor(options: ConnectionResponsesOptions) {
    this.#options = options;
    this.#streams = new ResponseStreams(() => this.#onIdle());
    this.#memory = options.service.createMemory();
    this.#watch = new ConnectionWatch({
      ...options,
      isRead: (id) => this.#running.has(id) || [...this.#sent].some((response) => response.id === id),
      refuse: (error, conversation) => this.#refuse(error, undefined, 'a conversation could not be watched', conversation),
      onIdle: () => this.#onIdle(),
    });
  }

  /** Responses that run, wait, are being resumed, or are watched. */
  get inFlight(): number {
    return this.#streams.inFlight + this.#watch.inFlight;
  }

  /** Whether the connection watches a conversation. */
  get isWatching(): boolean {
    return this.#watch.isOpen;
  }

  /**
   * Creates a response when the earlier ones of its stream have ended.
   *
   * @param account the memory of the request, which it holds until the response has ended.
   * @throws HttpError 429
   */
  create(request: ResponseRequest, account: Account): void {
    const leave = account.hold();
    const { service, query, caller } = this.#options;
    const conversation = service.conversationOf(request, query.model, caller.principal);
    const order = { stream: request.stream_id ?? '', conversation };
    try {
      this.#streams.run(order, (started) => this.#create(request, account, started).finally(leave));
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Cancels a response that the caller can reach, on whichever server, or a watched turn. Does
   * nothing for any other id. The scopes are those of `POST /v1/responses/{id}/cancel` and of
   * `POST /v1/conversations/{id}/cancel` (S-76).
   */
  async cancel(id: string): Promise<void> {
    const { service, caller } = this.#options;
    try {
      const find = () => this.#running.get(id) ?? service.findLive(id, caller.principal);
      if (find()) {
        await caller.authenticate('chat');
        find()?.cancel();
      } else if (this.#watch.turnOf(id)) {
        await caller.authenticate('sessions:write');
        void this.#watch.turnOf(id)?.cancel();
      } else if (isResponseId(id) && (await service.isElsewhere(id, caller.principal))) {
        await service.cancelElsewhere(id, await caller.authenticate('chat'));
      }
    } catch (error) {
      this.#refuse(error, undefined, 'a response could not be cancelled');
    }
  }

  /** Shows the responses of a conversation. @param conversation undefined for none. */
  watch(conversation: string | undefined, account: Account): void {
    this.#watch.watch(conversation, account);
  }

  /** The credential was checked: what it may reach can have changed. */
  recheck(): void {
    this.#watch.recheck();
  }

  /** Sends the events after a number, and those to come. @throws HttpError 429 */
  resume(id: string, after: number, account: Account): void {
    this.#streams.runBeside(async () => {
      const leave = account.hold();
      try {
        const { service, caller, query } = this.#options;
        const principal = await caller.authenticate('sessions:read');
        const { response, reader } = await service.resume(id, after, { principal, account, extensions: query.extensions });
        await this.#send(response, reader);
      } catch (error) {
        this.#refuse(error, undefined, 'a response could not be resumed');
      } finally {
        leave();
      }
    });
  }

  /**
   * Cancels the responses of the connection, also resumed ones: the drain time of the server is
   * over.
   */
  stop(reason: TurnError): void {
    this.#stopped = reason;
    for (const response of [...this.#running.values(), ...this.#sent]) response.cancel(reason);
  }

  /**
   * The client has disconnected. Each response loses a reader, and is cancelled unless it is
   * stored.
   */
  leave(): void {
    this.#closed = true;
    for (const leave of this.#leaving) leave();
    this.#watch.close();
    this.#memory.close();
  }

  #onIdle(): void {
    if (this.inFlight === 0) this.#options.onIdle();
  }

  /** Runs a response to its end. Never rejects. */
  async #create(request: ResponseRequest, account: Account, started: () => void): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#run(request, account, await this.#options.caller.admit(), started);
    } catch (error) {
      this.#refuse(error, request.stream_id, 'a response could not be created');
    }
  }

  async #run(request: ResponseRequest, account: Account, principal: Principal, started: () => void): Promise<void> {
    const { clock, ids, service, query, maxMessage, transport, connectionId } = this.#options;
    const begin = clock.monotonic();
    const requestId = `req_${ids.hex(32)}`;
    const planned = await service.plan(request, {
      principal,
      requestId,
      connectionId,
      transport,
      defaultModel: query.model,
      incremental: true,
      extensions: query.extensions,
      isCodex: this.#options.caller.isCodex,
      account,
      inputLimit: { bytes: maxMessage, setting: 'maxFrameSize' },
      connection: { memory: this.#memory, isConversation: query.isConversation },
    });
    if (this.#closed) return;
    const response = await planned.create();
    this.#running.set(response.id, response);
    try {
      const opening = response.open();
      started();
      const leave = () => response.leave();
      this.#leaving.add(leave);
      if (this.#closed) leave();
      if (this.#stopped) response.cancel(this.#stopped);
      const refused = await opening;
      this.#leaving.delete(leave);
      if (refused) throw planned.errorOf(refused);
      if (response.reader) await this.#send(response, response.reader);
    } finally {
      this.#running.delete(response.id);
      this.#logResponse(response, planned, principal, requestId, clock.monotonic() - begin);
    }
  }

  /** Sends the events of a response until it ends or the client disconnects. */
  async #send(response: ResumedResponse['response'], reader: ResumedResponse['reader']): Promise<void> {
    const { outbox } = this.#options;
    this.#sent.add(response);
    if (this.#stopped) response.cancel(this.#stopped);
    const leave = () => reader.leave();
    this.#leaving.add(leave);
    if (this.#closed) leave();
    for (let events = await reader.next(); events; events = await reader.next()) {
      const full = outbox.write(events);
      if (full) await full;
    }
    this.#leaving.delete(leave);
    this.#sent.delete(response);
    reader.leave();
  }

  /** Answers a message with an `error` event. @param problem for the log, if it is a defect. */
  #refuse(error: unknown, streamId: string | undefined, problem: string, conversation?: string): void {
    const { outbox, log, connectionId, onRevoked } = this.#options;
    const refusal = asProtocolError(error, true);
    if (!(refusal instanceof HttpError)) log.error({ err: refusal, connection_id: connectionId }, problem);
    outbox.reply(errorEvent(refusal, streamId, conversation));
    if (refusal instanceof HttpError && refusal.status === 401) onRevoked();
  }

  /** Logs one line per response, like the line of a request. */
  #logResponse(
    response: LiveResponse,
    planned: PlannedResponse,
    principal: Principal,
    requestId: string,
    duration: number,
  ): void {
    const { target, ignored } = planned;
    this.#options.log.info(
      {
        request_id: requestId,
        connection_id: this.#options.connectionId,
        response_id: response.id,
        agent: target.name,
        duration_ms: Math.round(duration * 100) / 100,
        project: principal.project,
        token_id: principal.tokenId,
        token_name: principal.token,
        status: response.end?.outcome.status,
        ...(ignored.length > 0 && { ignored_params: ignored }),
        ...response.logFields.fields(),
      },
      'response',
    );
  }
}
