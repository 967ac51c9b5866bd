import type { AgentEvent, Clock, IdSource, Logger, Message, Principal } from '@plugboard/kernel';
import {
  type AgentRuntime,
  type BusyMode,
  CONVERSATION_PREFIX,
  conversationId,
  type Failure,
  NO_USAGE,
  type Target,
  Transcript,
  TurnError,
  type TurnIdempotency,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import {
  conversationSessionKey,
  invalidRequest,
  type ProtocolError,
  parseSessionKey,
  resolveAgent,
  TurnLogFields,
} from '@plugboard/openai-protocol';
import { ResponseEncoder } from '../events/response-encoder.js';
import { type ResponseHead, usageJson } from '../events/response-object.js';
import { encodeSummary } from '../items/compaction.js';
import { type InputMessages, messagesOf, nameItems } from '../items/input-messages.js';
import { connectionForTextOnly } from '../items/input-parts.js';
import { LiveResponse, type LiveSession, type ResponseEnd } from '../live/live-response.js';
import { ResponseRegistry } from '../live/response-registry.js';
import { clientToolsOf } from '../request/client-tools.js';
import { echoOf } from '../request/echo.js';
import { parametersOf } from '../request/parameters.js';
import type { ResponseRequest } from '../request/request.js';
import { summarize } from './compaction.js';
import type { ConnectionMemory } from './connection-memory.js';
import { joinHistory } from './join-history.js';
import { resolveReferences } from './resolve-references.js';
import { type StoredResponse, StoredResponses } from './stored-response.js';

/** The protocol's own figure for messages. */
const MOST_ITEMS = 2048;
const ID_LENGTH = 24;

/** Who asks for a response, and how. */
export interface ResponseCaller {
  readonly principal: Principal;
  readonly requestId: string;
  /** The agent of requests that name none. */
  readonly defaultModel?: string | undefined;
  /** What happens if the session is busy; undefined for the agent's own `onBusy`. */
  readonly busy?: BusyMode | undefined;
  /** Equal for a retry of the same request by the same caller, which then joins the turn. Only requests that name a session are joined. */
  readonly fingerprint?: string | undefined;
  /** Whether the answer is read as it is written. */
  readonly incremental: boolean;
  /** Whether somebody may come back for the events of a stored response. */
  readonly resumable: boolean;
  /** Whether `svc:` events are wanted. */
  readonly extensions: boolean;
  readonly connection?: CallerConnection | undefined;
}

/** The connection that a response is created on. */
export interface CallerConnection {
  readonly memory: ConnectionMemory;
  /** Whether requests that name nothing to continue continue the last response of their lane. */
  readonly isConversation: boolean;
}

/** A checked request. Nothing has been run or stored. */
export interface PlannedResponse {
  readonly id: string;
  readonly target: Target;
  readonly head: ResponseHead;
  /** The key of the session that the request named; undefined if it named none. */
  readonly sessionKey: string | undefined;
  /** Whether the model's reasoning is shown. */
  readonly showsReasoning: boolean;
  /** Fields that were accepted and have no effect. */
  readonly ignored: readonly string[];
  /** Unix time, seconds. */
  now(): number;
  /** Creates the response. Called once. @throws TurnError */
  create(idempotency?: TurnIdempotency): Promise<LiveResponse>;
  /** What its end means to whoever may repeat the request. @param failure restated in terms of the request. */
  failure(failure: Failure): Failure;
}

/** What a response goes on from. */
type Base =
  | { readonly kind: 'stateless'; readonly history: readonly Message[] }
  /** A new session, for this chain of responses. */
  | { readonly kind: 'chain'; readonly history: readonly Message[] }
  /** The session of a stored response, or a copy of it. */
  | { readonly kind: 'stored'; readonly previous: StoredResponse }
  /** The session that the request named. */
  | { readonly kind: 'session'; readonly key: string };

export interface ResponseServiceOptions {
  runtime(): AgentRuntime;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/**
 * Creates responses and finds them again, for all transports of the protocol together.
 *
 * A stored response lives in a session: `store: true` without `conversation` makes one for the chain that begins with it. Continuing the newest response of a chain adds a turn to
 * its session; continuing an older one, or one whose continuation already runs, copies the session up to it: a branch of its own.
 */
export class ResponseService {
  readonly stored: StoredResponses;
  readonly live: ResponseRegistry;
  readonly #options: ResponseServiceOptions;
  /** Sessions of chains in which a turn runs, by their opaque ids. */
  readonly #busyChains = new Set<string>();
  /** Turns that run or wait, by the opaque id of their session. */
  readonly #running = new Map<string, number>();

  constructor(options: ResponseServiceOptions) {
    this.#options = options;
    this.stored = new StoredResponses(() => options.runtime().conversations);
    this.live = new ResponseRegistry(options.clock);
  }

  get runtime(): AgentRuntime {
    return this.#options.runtime();
  }

  /**
   * Replaces a conversation by a summary of it: the items that a new chain of responses begins with.
   *
   * @throws ProtocolError for a request that cannot be served. @throws TurnError
   */
  async compact(
    request: ResponseRequest,
    caller: Pick<TurnRequest, 'principal' | 'requestId' | 'signal'>,
  ): Promise<CompactedConversation> {
    const { runtime } = this;
    const { principal } = caller;
    const target = resolveAgent(runtime, request.model ?? '', 'model', principal);
    const input = await this.#inputOf(request, target, principal);
    const previous = request.previous_response_id;
    const stored = previous === undefined ? undefined : await this.stored.get(previous, principal);
    if (previous !== undefined && stored?.agent !== target.name) throw previousNotFound(previous);
    const history = stored ? await this.stored.history(stored, principal) : [];
    const { text, usage } = await summarize(runtime, [...history, ...input.messages], { ...caller, target });
    const suffix = this.#options.ids.base62(ID_LENGTH);
    const item = { id: `cmp_${suffix}`, type: 'compaction', encrypted_content: encodeSummary(text) };
    return {
      id: `resp_${suffix}`,
      object: 'response.compaction',
      created_at: this.#now(),
      output: [item],
      usage: JSON.parse(usageJson(usage)),
    };
  }

  /**
   * Checks a request, and finds what it goes on from.
   *
   * @throws ProtocolError for a request that cannot be served. @throws TurnError
   */
  async plan(request: ResponseRequest, caller: ResponseCaller): Promise<PlannedResponse> {
    try {
      return await this.#plan(request, caller);
    } catch (error) {
      // A continuation that fails takes the connection's copy of what it continued with it (Open Responses, WebSocket continuation).
      const { previous_response_id: previous } = request;
      if (previous !== undefined) caller.connection?.memory.evict(previous);
      throw error;
    }
  }

  async #plan(request: ResponseRequest, caller: ResponseCaller): Promise<PlannedResponse> {
    const { principal, connection } = caller;
    const runtime = this.#options.runtime();
    const target = resolveAgent(runtime, request.model ?? caller.defaultModel ?? '', 'model', principal);
    const clientTools = clientToolsOf(request, target);
    const { params, ignored } = parametersOf(request, target, clientTools.length > 0);
    const input = await this.#inputOf(request, target, principal);
    const lane = request.stream_id ?? '';
    const implied =
      connection?.isConversation && request.conversation === undefined ? connection.memory.last(lane)?.id : undefined;
    const previous = request.previous_response_id ?? implied;
    const stored = request.store !== false && request.generate !== false;
    const base = await this.#baseOf(request, previous, stored, target, caller);
    const user = parseSessionKey(request.user, 'user');
    const { system, messages } = split(input, request.instructions);
    const joined: InputMessages =
      base.kind === 'stateless' || base.kind === 'chain'
        ? { messages: joinHistory(base.history, messages), origins: shifted(base.history.length, messages.origins) }
        : messages;

    const id = `resp_${this.#options.ids.base62(ID_LENGTH)}`;
    const named =
      base.kind === 'session' ? conversationId({ project: principal.project, agent: target.name, key: base.key }) : undefined;
    const head: ResponseHead = {
      id,
      createdAt: this.#now(),
      model: request.model ?? caller.defaultModel ?? target.name,
      echo: echoOf(request, { previous, conversation: named, stored }),
    };
    const turn: Omit<TurnRequest, 'signal' | 'session' | 'idempotency'> = {
      target,
      principal,
      messages: [...system, ...joined.messages],
      clientTools,
      params,
      maxToolCalls: request.max_tool_calls,
      wholeHistory: request.truncation === 'disabled',
      incremental: caller.incremental,
      requestId: caller.requestId,
      metadata: request.metadata ?? {},
    };
    const showsReasoning = request.reasoning?.summary != null && target.toolVisibility === 'full';
    const restate = (failure: Failure) => restated(failure, { ...joined, origins: shifted(system.length, joined.origins) });
    return {
      id,
      target,
      head,
      sessionKey: base.kind === 'session' ? base.key : undefined,
      showsReasoning,
      ignored,
      now: () => this.#now(),
      failure: restate,
      create: (idempotency) =>
        this.#create({ request, caller, head, base, turn, user, stored, lane, showsReasoning }, idempotency),
    };
  }

  #now(): number {
    return Math.floor(this.#options.clock.now() / 1000);
  }

  async #inputOf(request: ResponseRequest, target: Target, principal: Principal): Promise<InputMessages> {
    const { input = [] } = request;
    if (typeof input === 'string') return { messages: [{ role: 'user', content: input }], origins: [0] };
    const items = await resolveReferences(input, this.stored, principal);
    const rules = { param: 'input', maxItems: MOST_ITEMS, textOnly: connectionForTextOnly(target), purpose: 'turn' } as const;
    return messagesOf(items, rules);
  }

  async #baseOf(
    request: ResponseRequest,
    previous: string | undefined,
    stored: boolean,
    target: Target,
    { principal, connection }: ResponseCaller,
  ): Promise<Base> {
    const key = await this.#sessionKeyOf(request, target, principal);
    if (key !== undefined) return request.generate === false ? { kind: 'stateless', history: [] } : { kind: 'session', key };
    const fresh = (history: readonly Message[]): Base => ({ kind: stored ? 'chain' : 'stateless', history });
    if (previous === undefined) return fresh([]);
    const remembered = connection?.memory.find(previous);
    if (remembered?.messages && remembered.agent === target.name) return fresh(remembered.messages);
    const found = await this.stored.get(previous, principal);
    if (!found || found.agent !== target.name) throw previousNotFound(previous);
    return stored
      ? { kind: 'stored', previous: found }
      : { kind: 'stateless', history: await this.stored.history(found, principal) };
  }

  /** The key of the session that the request names; undefined if it names none. */
  async #sessionKeyOf({ conversation }: ResponseRequest, target: Target, principal: Principal): Promise<string | undefined> {
    const name = parseSessionKey(typeof conversation === 'object' ? conversation.id : conversation, 'conversation');
    if (!name?.startsWith(CONVERSATION_PREFIX)) return name;
    return conversationSessionKey(
      { conversation: name, param: 'conversation' },
      target,
      principal,
      this.#options.runtime().conversations,
    );
  }

  async #create(plan: Plan, idempotency: TurnIdempotency | undefined): Promise<LiveResponse> {
    const { request, caller, head, turn, stored } = plan;
    const { target, principal } = turn;
    let place: SessionPlace | undefined;
    try {
      place = await this.#placeOf(plan);
    } catch (error) {
      if (idempotency) await this.#release({ ...turn, idempotency });
      throw error;
    }
    const transcript = caller.connection && !stored ? new Transcript() : undefined;
    const session = place && this.#session(request, place);
    const facts = new TurnLogFields();
    const response = new LiveResponse({
      encoder: new ResponseEncoder(head, {
        visibility: target.toolVisibility,
        showsReasoning: plan.showsReasoning,
        extensions: caller.extensions,
        streamId: request.stream_id,
        facts,
      }),
      stored,
      facts,
      resumable: stored && caller.resumable,
      outlivesReaders: target.onDisconnect === 'continue' && (stored || place !== undefined),
      session,
      run: (signal) =>
        request.generate === false
          ? warmUp(head.id, target.name)
          : this.#options.runtime().run({
              ...turn,
              session: place && {
                key: place.key,
                user: plan.user,
                busy: caller.busy,
                fingerprint: place.isChain ? undefined : caller.fingerprint,
              },
              signal,
              idempotency,
            }),
      keep: async (json) => {
        if (!stored || !place) return;
        const { conversation, isChain } = place;
        await this.stored.put(head.id, { conversation, isChain, turn: await place.turn(), response: json }, principal);
      },
      observe: (batch) => transcript?.add(batch),
      onEnd: (end) => this.#ended(plan, place, response, end, transcript),
      clock: this.#options.clock,
      log: this.#options.log,
    });
    if (stored) this.live.add(response, principal, target.name);
    if (place) this.#running.set(place.conversation, (this.#running.get(place.conversation) ?? 0) + 1);
    return response;
  }

  /** The session that a response runs in; undefined for one without. */
  async #placeOf({ base, head, turn }: Plan): Promise<SessionPlace | undefined> {
    const { target, principal } = turn;
    const placed = (key: string, isChain: boolean, number?: number): SessionPlace => {
      const conversation = conversationId({ project: principal.project, agent: target.name, key });
      const known = number === undefined ? undefined : Promise.resolve(number);
      return new SessionPlace(key, conversation, isChain, () => known ?? this.#nextTurn(conversation, principal));
    };
    switch (base.kind) {
      case 'stateless':
        return undefined;
      case 'session':
        return placed(base.key, false);
      case 'chain':
        return placed(head.id, true, 1);
      case 'stored': {
        const { conversation, turn: number, isChain } = base.previous;
        const { conversations } = this.#options.runtime();
        const { id, turns, status } = await conversations.get(conversation, principal);
        const isNewest = isChain && turns === number && status === 'idle';
        if (isNewest && !this.#busyChains.has(conversation)) {
          this.#busyChains.add(conversation);
          return placed(id.key, true, number + 1);
        }
        await conversations.fork(conversation, { key: head.id, turns: number }, principal);
        return placed(head.id, true, number + 1);
      }
    }
  }

  /** The number of the turn that runs now in a session: one more than are stored. */
  async #nextTurn(conversation: string, principal: Principal): Promise<number> {
    try {
      const { turns } = await this.#options.runtime().conversations.get(conversation, principal);
      return turns + 1;
    } catch (error) {
      if (error instanceof TurnError && error.code === 'conversation_not_found') return 1;
      throw error;
    }
  }

  #session({ conversation }: ResponseRequest, place: SessionPlace): LiveSession {
    const name = (typeof conversation === 'object' ? conversation.id : conversation) ?? place.conversation;
    return { name, ahead: this.#running.get(place.conversation) ?? 0, turn: () => place.turn() };
  }

  #ended(
    plan: Plan,
    place: SessionPlace | undefined,
    response: LiveResponse,
    { outcome }: ResponseEnd,
    transcript: Transcript | undefined,
  ): void {
    const { caller, turn, lane, stored } = plan;
    if (place) {
      this.#busyChains.delete(place.conversation);
      const left = (this.#running.get(place.conversation) ?? 1) - 1;
      if (left > 0) this.#running.set(place.conversation, left);
      else this.#running.delete(place.conversation);
    }
    const isFinished = outcome.status === 'completed' || (outcome.status === 'incomplete' && isCommitted(outcome.reason));
    this.live.end(response, caller.resumable);
    const { memory } = caller.connection ?? {};
    if (!memory) return;
    if (isFinished) {
      const said = turn.messages.filter(({ role }) => role !== 'system');
      const messages = stored ? undefined : [...said, ...(transcript?.messages() ?? [])];
      memory.put(lane, { id: response.id, agent: turn.target.name, messages });
    } else if (outcome.status === 'failed' && plan.request.previous_response_id !== undefined) {
      memory.evict(plan.request.previous_response_id);
    }
  }

  /** Gives a claimed idempotency key back, by a turn that ends at once. */
  async #release(turn: Omit<TurnRequest, 'signal'>): Promise<void> {
    for await (const _ of this.#options.runtime().run({ ...turn, signal: AbortSignal.abort() }));
  }
}

/** What `POST /v1/responses/compact` returns. */
export interface CompactedConversation {
  readonly id: string;
  readonly object: 'response.compaction';
  readonly created_at: number;
  readonly output: readonly object[];
  readonly usage: object;
}

interface Plan {
  readonly request: ResponseRequest;
  readonly caller: ResponseCaller;
  readonly head: ResponseHead;
  readonly base: Base;
  readonly turn: Omit<TurnRequest, 'signal' | 'session' | 'idempotency'>;
  readonly user: string | undefined;
  readonly stored: boolean;
  readonly showsReasoning: boolean;
  readonly lane: string;
}

/** The session that a response runs in. */
class SessionPlace {
  #turn: Promise<number> | undefined;

  constructor(
    readonly key: string,
    /** The opaque id. */
    readonly conversation: string,
    readonly isChain: boolean,
    readonly nextTurn: () => Promise<number>,
  ) {}

  /** The number of the response's turn. Must first be called while the turn runs. */
  turn(): Promise<number> {
    this.#turn ??= this.nextTurn();
    return this.#turn;
  }
}

/** Whether a turn that was cut short is part of its conversation all the same. */
function isCommitted(reason: string | undefined): boolean {
  return reason !== 'cancelled' && reason !== 'interrupted' && reason !== 'shutdown';
}

/** Instructions and system messages apply to one turn; everything else is the conversation. */
function split(
  { messages, origins }: InputMessages,
  instructions: string | undefined,
): { readonly system: readonly Message[]; readonly messages: InputMessages } {
  const sent = messages.filter(({ role }) => role === 'system');
  const system: readonly Message[] = instructions === undefined ? sent : [{ role: 'system', content: instructions }, ...sent];
  const isKept = (_: unknown, index: number) => messages[index]?.role !== 'system';
  return { system, messages: { messages: messages.filter(isKept), origins: origins.filter(isKept) } };
}

/** Origins of messages with others in front of them. */
function shifted(count: number, origins: readonly number[]): readonly number[] {
  return [...Array<number>(count).fill(0), ...origins];
}

function restated(failure: Failure, input: InputMessages): Failure {
  if (failure.code !== 'invalid_request') return failure;
  return { ...failure, ...nameItems(input, 'input', { message: failure.message, param: failure.param }) };
}

/** A turn that says nothing: the conversation is prepared, and no model is asked. */
async function* warmUp(turnId: string, agent: string): AsyncGenerator<readonly AgentEvent[]> {
  yield [{ type: 'started', turnId, agent }];
  yield [{ type: 'finished', reason: 'stop', usage: NO_USAGE }];
}

export function previousNotFound(id: string): ProtocolError {
  return invalidRequest(`Previous response with id '${id}' not found.`, {
    param: 'previous_response_id',
    code: 'previous_response_not_found',
  });
}
