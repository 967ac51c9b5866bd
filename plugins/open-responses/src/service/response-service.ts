import { type AgentEvent, type Clock, defineExtensionPoint, type IdSource, type Logger } from '@plugboard/kernel';
import {
  type AgentRuntime,
  heapLimit,
  NO_USAGE,
  Transcript,
  type TurnIdempotency,
  type TurnRequest,
} from '@plugboard/kernel/contracts';
import { resolveAgent, TurnLogFields } from '@plugboard/openai-protocol';
import { ResponseEncoder } from '../events/response-encoder.js';
import { usageJson } from '../events/response-object.js';
import { encodeSummary } from '../items/compaction.js';
import { LiveResponse, type ResponseEnd } from '../live/live-response.js';
import { ResponseRegistry } from '../live/response-registry.js';
import type { ResponseRequest } from '../request/request.js';
import { summarize } from './compaction.js';
import { ConnectionMemory, ConnectionMemoryPool } from './connection-memory.js';
import { previousNotFound } from './not-found.js';
import type { Plan, PlannedResponse, ResponseCaller } from './response-plan.js';
import { ID_LENGTH, ResponsePlanner } from './response-planner.js';
import { type SessionPlace, SessionPlaces } from './session-places.js';
import { StoredResponses } from './stored-response.js';

/** Bytes of conversations that all connections together remember. */
const MOST_REMEMBERED = Math.min(128 * 1024 * 1024, heapLimit() / 16);

/**
 * The service behind the transports of the Responses API. Discipline: exactly one, so that a
 * response created on one transport is found on another.
 */
export const ResponseServices = defineExtensionPoint<ResponseService>('open-responses.service', { discipline: 'one' });

export interface ResponseServiceOptions {
  runtime(): AgentRuntime;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly log: Logger;
}

/** What `POST /v1/responses/compact` returns. */
export interface CompactedConversation {
  readonly id: string;
  readonly object: 'response.compaction';
  readonly created_at: number;
  readonly output: readonly object[];
  readonly usage: object;
}

/**
 * Creates responses and finds them again, for all transports of the protocol together.
 *
 * A stored response lives in a session: `store: true` without `conversation` makes one for the
 * chain that begins with it.
 */
export class ResponseService {
  readonly stored: StoredResponses;
  readonly live: ResponseRegistry;
  readonly #options: ResponseServiceOptions;
  readonly #planner: ResponsePlanner;
  readonly #places: SessionPlaces;
  readonly #memories = new ConnectionMemoryPool(MOST_REMEMBERED);

  constructor(options: ResponseServiceOptions) {
    this.#options = options;
    this.stored = new StoredResponses(() => options.runtime().conversations);
    this.live = new ResponseRegistry(options.clock);
    this.#planner = new ResponsePlanner({ ...options, stored: this.stored });
    this.#places = new SessionPlaces(() => options.runtime());
  }

  get runtime(): AgentRuntime {
    return this.#options.runtime();
  }

  /** No limit of its own: the runtime ends what takes too long. */
  readonly stopLimit = 24 * 60 * 60_000;

  /**
   * Waits for the responses that run, also for those without a reader. They end with their turns,
   * and stored ones are then stored.
   */
  async stop(): Promise<void> {
    await this.runtime.drain();
    await this.live.idle();
  }

  /** A memory for a new connection, which must close it in the end. */
  remember(): ConnectionMemory {
    return new ConnectionMemory(this.#memories);
  }

  /**
   * Replaces a conversation by a summary of it: the items that a new chain of responses begins
   * with.
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
    const input = await this.#planner.inputOf(request, target, principal);
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
      created_at: this.#planner.now(),
      output: [item],
      usage: JSON.parse(usageJson(usage)),
    };
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
      // A continuation that fails evicts what it continues from the connection's memory (Open
      // Responses, WebSocket continuation).
      const { previous_response_id: previous } = request;
      if (previous !== undefined) caller.connection?.memory.evict(previous);
      throw error;
    }
    return {
      id: plan.head.id,
      target: plan.turn.target,
      head: plan.head,
      sessionKey: plan.base.kind === 'session' ? plan.base.key : undefined,
      showsReasoning: plan.showsReasoning,
      ignored: plan.ignored,
      now: () => this.#planner.now(),
      failure: plan.failure,
      create: (idempotency) => this.#create(plan, idempotency),
    };
  }

  async #create(plan: Plan, idempotency: TurnIdempotency | undefined): Promise<LiveResponse> {
    const { request, caller, head, turn, stored } = plan;
    const { target, principal } = turn;
    let place: SessionPlace | undefined;
    try {
      place = await this.#places.find(plan);
    } catch (error) {
      if (idempotency) await this.#release({ ...turn, idempotency });
      throw error;
    }
    const transcript = caller.connection && !stored ? new Transcript() : undefined;
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
      incremental: caller.incremental,
      memory: caller.memory,
      outlivesReaders: target.onDisconnect === 'continue' && (stored || place !== undefined),
      session: place && this.#places.shown(request, place),
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
    if (place) this.#places.begin(place);
    return response;
  }

  #ended(
    { caller, turn, lane, stored, request }: Plan,
    place: SessionPlace | undefined,
    response: LiveResponse,
    { outcome }: ResponseEnd,
    transcript: Transcript | undefined,
  ): void {
    if (place) this.#places.end(place);
    this.live.end(response, caller.resumable);
    const { memory } = caller.connection ?? {};
    if (!memory) return;
    const isFinished = outcome.status === 'completed' || (outcome.status === 'incomplete' && isCommitted(outcome.reason));
    if (isFinished) {
      const said = turn.messages.filter(({ role }) => role !== 'system');
      const messages = stored ? undefined : [...said, ...(transcript?.messages() ?? [])];
      memory.put(lane, { id: response.id, agent: turn.target.name, messages });
    } else if (outcome.status === 'failed' && request.previous_response_id !== undefined) {
      memory.evict(request.previous_response_id);
    }
  }

  /** Gives a claimed idempotency key back, by a turn that ends at once. */
  async #release(turn: Omit<TurnRequest, 'signal'>): Promise<void> {
    for await (const _ of this.#options.runtime().run({ ...turn, signal: AbortSignal.abort() }));
  }
}

/** Whether a turn that was cut short is part of its conversation all the same. */
function isCommitted(reason: string | undefined): boolean {
  return reason !== 'cancelled' && reason !== 'interrupted' && reason !== 'shutdown';
}

/** A turn without a model call, for `generate: false`: the conversation is prepared. */
async function* warmUp(turnId: string, agent: string): AsyncGenerator<readonly AgentEvent[]> {
  yield [{ type: 'started', turnId, agent }];
  yield [{ type: 'finished', reason: 'stop', usage: NO_USAGE }];
}
