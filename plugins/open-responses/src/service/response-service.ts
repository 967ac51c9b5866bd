import { AgentRuntimes, defineExtensionPoint, type Extensions, type PluginContext, type Principal } from '@plugboard/kernel';
import { Account, type AgentRuntime, CONVERSATION_PREFIX, conversationId } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { ProtocolError } from '@plugboard/openai-protocol';
import { estimateTokens } from '@plugboard/turn-routes';
import { ConversationWatch, type ConversationWatchOptions } from '../live/conversation-watch.js';
import type { EventReader } from '../live/event-log.js';
import type { LiveResponse } from '../live/live-response.js';
import { LiveResponses } from '../live/live-responses.js';
import { RemoteResponses } from '../live/remote-responses.js';
import { conversationName, type InputItem, type ResponseRequest } from '../request/request.js';
import { ConnectionMemory, ConnectionMemoryPool } from './connection-memory.js';
import { eventAhead, eventsExpired, responseNotFound } from './response-errors.js';
import { historyOf, type InputCaller, type Plan, type PlannedResponse, type ResponseCaller } from './response-plan.js';
import { ResponsePlanner } from './response-planner.js';
import { type CompactedConversation, ResponseRunner } from './response-runner.js';
import { isResponseId, StoredResponses } from './stored-responses.js';

/**
 * The service behind the transports of the Responses API. Discipline: exactly one, so that a
 * response created on one transport is found on another.
 *
 * 1. A transport checks a request with `parseRequest`, and plans it with `plan`.
 * 2. `create` of the plan makes the response, `open` starts it. Its events are read with `read`.
 * 3. Responses are found again by their ids: `get`, `resume`, `cancel`, `delete`, `inputItems`. A
 *    stored response lives in a session: `store: true` without `conversation` makes one for the
 *    chain of responses that begins with it.
 * 4. `watch` shows the turns of a session as responses, also those that other transports began.
 */
export const ResponseServices = defineExtensionPoint<ResponseService>('open-responses.service', { discipline: 'one' });

/** The caller of something that is no response. */
type Asker = InputCaller & Pick<ResponseCaller, 'requestId' | 'transport'>;

/** A response that runs, or has just ended, and a reader of its events. */
export interface ResumedResponse {
  readonly response: Pick<LiveResponse, 'id' | 'cancel'>;
  readonly reader: Pick<EventReader, 'next' | 'leave' | 'isOver'>;
}

const UNREAD = { incremental: false, extensions: false } as const;

export class ResponseService {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #budgets: PluginContext['budgets'];
  readonly #planner: ResponsePlanner;
  readonly #runner: ResponseRunner;
  readonly #live: LiveResponses;
  readonly #remote: RemoteResponses;
  readonly #stored: StoredResponses;
  readonly #memories = new ConnectionMemoryPool();

  constructor(
    @inject(CONTEXT) { extensions, budgets }: PluginContext,
    @inject(ResponsePlanner) planner: ResponsePlanner,
    @inject(ResponseRunner) runner: ResponseRunner,
    @inject(LiveResponses) live: LiveResponses,
    @inject(StoredResponses) stored: StoredResponses,
    @inject(RemoteResponses) remote: RemoteResponses,
  ) {
    this.#runtimes = extensions(AgentRuntimes);
    this.#budgets = budgets;
    this.#planner = planner;
    this.#runner = runner;
    this.#live = live;
    this.#stored = stored;
    this.#remote = remote;
  }

  /** Milliseconds. No limit of its own: the runtime ends what takes too long. */
  readonly stopLimit = 24 * 60 * 60_000;

  /**
   * Waits for the responses that run, also for those without a reader. They end with their turns,
   * and stored ones are then stored.
   */
  async stop(): Promise<void> {
    await this.#runtimes.one().drain?.();
    await this.#live.idle();
  }

  /** A memory for a new connection, which must close it in the end. */
  createMemory(): ConnectionMemory {
    return new ConnectionMemory(this.#memories);
  }

  /**
   * Checks a request, and finds what it continues.
   *
   * @throws ProtocolError for a request that cannot be served. @throws TurnError
   */
  async plan(request: ResponseRequest, caller: ResponseCaller): Promise<PlannedResponse> {
    let plan: Plan;
    try {
      plan = await this.#planner.plan(request, caller);
    } catch (error) {
      forgetPrevious(request, caller, error);
      throw error;
    }
    return {
      id: plan.head.id,
      target: plan.turn.target,
      sessionKey: plan.base.kind === 'session' ? plan.base.key : undefined,
      ignored: plan.ignored,
      fold: () => this.#runner.fold(plan),
      errorOf: plan.errorOf,
      create: (idempotency) => this.#runner.create(plan, idempotency),
    };
  }

  /**
   * The opaque id of the conversation that a request names, by id or by key. The name itself if the
   * request cannot be served; undefined if it names none.
   */
  conversationOf(request: ResponseRequest, defaultModel: string | undefined, principal: Principal): string | undefined {
    const name = conversationName(request);
    if (name === undefined || name.startsWith(CONVERSATION_PREFIX)) return name;
    const found = this.#runtimes.one().resolve(request.model ?? defaultModel ?? '', principal);
    return found.kind === 'target' ? conversationId({ project: principal.project, agent: found.target.name, key: name }) : name;
  }

  /**
   * Watches the turns of a conversation as responses, whatever began them.
   *
   * @throws TurnError `conversation_not_found`
   */
  async watch(
    conversation: string,
    principal: Principal,
    options: Omit<ConversationWatchOptions, 'now' | 'openAccount'>,
  ): Promise<ConversationWatch> {
    const watch = await this.#runtimes.one().conversations.watch(conversation, principal, options.maxBehind);
    return new ConversationWatch(conversation, watch, {
      ...options,
      openAccount: () => new Account(this.#budgets.memory, principal),
      now: () => this.#planner.now(),
    });
  }

  /** The response that runs, or ended a short while ago; undefined if the caller reaches none. */
  findLive(id: string, principal: Principal): LiveResponse | undefined {
    return this.#live.find(id, principal);
  }

  /** A response in its current state, as JSON. @throws ProtocolError 404. @throws TurnError */
  async get(id: string, principal: Principal, account: Account): Promise<string> {
    const response =
      (await this.#findKept(id, principal, account))?.encoder.snapshot() ??
      (await this.#stored.get(id, principal, account))?.response ??
      (await this.#elsewhere(id, principal, account))?.response;
    if (response === undefined) throw responseNotFound(id);
    return response;
  }

  /** The items of the request for a response. @throws ProtocolError 404. @throws TurnError */
  async inputItems(id: string, principal: Principal, account: Account): Promise<readonly InputItem[]> {
    const input =
      this.findLive(id, principal)?.input ??
      (await this.#stored.get(id, principal, account))?.input ??
      (await this.#elsewhere(id, principal, account))?.input;
    if (input === undefined) throw responseNotFound(id);
    return input;
  }

  /**
   * A response, and a reader of its events after a sequence number.
   *
   * @param after -1 for all events.
   * @param reader.extensions whether the reader receives `svc:` events.
   * @throws ProtocolError 400, 404 or 410. @throws TurnError
   */
  async resume(
    id: string,
    after: number,
    {
      principal,
      account,
      extensions,
    }: { readonly principal: Principal; readonly account: Account; readonly extensions: boolean },
  ): Promise<ResumedResponse> {
    const live = await this.#findKept(id, principal, account);
    if (!live) {
      const isKnown = (await this.#stored.locate(id, principal, account)) ?? (await this.#remote.isRunning(id, principal));
      if (!isKnown) throw responseNotFound(id);
      const remote = await this.#remote.open(id, principal, after, extensions);
      if (remote && after + 1 >= remote.head.first) return { response: remote, reader: remote };
      remote?.leave();
      throw eventsExpired(id);
    }
    if (after >= live.events.end) throw eventAhead(after, live.events.end - 1);
    const reader = live.events.join(after + 1, extensions);
    if (!reader) throw eventsExpired(id);
    return { response: live, reader };
  }

  /**
   * Cancels a response, unless it has ended, and returns it as JSON when it has.
   *
   * @throws ProtocolError 404. @throws TurnError
   */
  async cancel(id: string, principal: Principal, account: Account): Promise<string> {
    const live = this.findLive(id, principal);
    live?.cancel();
    await live?.ended;
    if (!live && (await this.#remote.cancel(id, principal))) await this.#storedElsewhere(id, principal, account);
    return this.get(id, principal, account);
  }

  /** Whether another server runs the response, and the principal reaches it. @throws TurnError */
  isElsewhere(id: string, principal: Principal): Promise<boolean> {
    return this.#remote.isRunning(id, principal);
  }

  /** Cancels a response that another server runs. @throws TurnError */
  async cancelElsewhere(id: string, principal: Principal): Promise<void> {
    await this.#remote.cancel(id, principal);
  }

  /**
   * Deletes a response. One that runs is cancelled first.
   *
   * @throws ProtocolError 404.
   * @throws TurnError
   */
  async delete(id: string, principal: Principal, account: Account): Promise<void> {
    const live = await this.#findKept(id, principal, account);
    live?.cancel();
    await live?.ended;
    this.#live.forget(id);
    const isElsewhere = !live && (await this.#remote.cancel(id, principal));
    if (isElsewhere) await this.#storedElsewhere(id, principal, account);
    const wasStored = await this.#stored.delete(id, principal, account);
    if (!live && !isElsewhere && !wasStored) throw responseNotFound(id);
  }

  /** As `findLive`, but not one that was deleted since, by any server. @throws TurnError */
  async #findKept(id: string, principal: Principal, account: Account): Promise<LiveResponse | undefined> {
    const live = this.findLive(id, principal);
    if (!live?.isStored) return live;
    const stored = await this.#stored.get(id, principal, account);
    account.release(stored?.memory ?? 0);
    return stored && live;
  }

  /** A response that another server runs. It may end, and be stored, while it is asked for. */
  async #elsewhere(
    id: string,
    principal: Principal,
    account: Account,
  ): Promise<{ readonly response: string; readonly input: readonly InputItem[] } | undefined> {
    if (!isResponseId(id) || !(await this.#remote.isRunning(id, principal))) return undefined;
    const remote = await this.#remote.open(id, principal, -1, false);
    remote?.leave();
    return remote?.head ?? this.#storedElsewhere(id, principal, account);
  }

  /** What another server stores of a response whose turn has ended. */
  async #storedElsewhere(id: string, principal: Principal, account: Account) {
    return this.#remote.stored(() => this.#stored.get(id, principal, account));
  }

  /**
   * Replaces a conversation by a summary of it: the items that a new chain of responses begins
   * with.
   *
   * @throws ProtocolError for a request that cannot be served. @throws TurnError
   */
  async compact(
    { model, input = [], previous_response_id }: ResponseRequest,
    caller: Asker & { readonly signal: AbortSignal },
  ): Promise<CompactedConversation> {
    const said = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
    const request = { model, input: [...said, { type: 'compaction_trigger' }], previous_response_id };
    const plan = await this.#planner.plan(request as ResponseRequest, { ...caller, ...UNREAD });
    return this.#runner.compact(plan, caller.signal);
  }

  /**
   * Estimates the tokens of a request and of what it continues. No model is asked. The agent's own
   * prompt and tools, and the messages of a `conversation`, are not counted.
   *
   * @throws ProtocolError for a request that could not be served either. @throws TurnError
   */
  async countTokens(request: ResponseRequest, caller: Asker): Promise<number> {
    const { turn, base } = await this.#planner.plan({ ...request, store: false }, { ...caller, ...UNREAD });
    return estimateTokens([...historyOf(base), ...turn.messages], turn.clientTools);
  }
}

/**
 * A continuation that fails evicts what it continues from the memory of its connection (Open
 * Responses, WebSocket continuation). What a request continues without naming it is only evicted
 * once it is gone, so that the next request begins a new conversation.
 */
function forgetPrevious(request: ResponseRequest, { connection }: ResponseCaller, error: unknown): void {
  const { previous_response_id: previous, stream_id: stream = '' } = request;
  if (previous !== undefined) connection?.memory.evict(previous);
  else if (error instanceof ProtocolError && error.code === 'previous_response_not_found') connection?.memory.forget(stream);
}
