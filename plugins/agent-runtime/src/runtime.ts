import type { ConfigProblem, PluginContext, Principal } from '@plugboard/kernel';
import type {
  AgentRuntime,
  ClaimResult,
  IdempotencyKey,
  Reconfiguration,
  RequestCount,
  TargetInfo,
  TargetResolution,
  TurnEvents,
  TurnRequest,
} from '@plugboard/kernel/contracts';
import { Account, TurnError } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { RuntimeSettings } from './config.js';
import { AgentCardOperations } from './engine/agent-card-operations.js';
import { RequestRates } from './engine/limits/request-rates.js';
import { TurnLimiter } from './engine/limits/turn-limiter.js';
import { TurnMemory } from './engine/limits/turn-memory.js';
import { withoutExtras } from './engine/messages/extra.js';
import { CurrentAgents } from './engine/revision/current-agents.js';
import { NestedEvents } from './engine/turn/nested-events.js';
import { ParentCall } from './engine/turn/parent-call.js';
import { RunningTurns } from './engine/turn/running-turns.js';
import { LentLease } from './engine/turn/turn-lease.js';
import { TurnRunner } from './engine/turn/turn-runner.js';
import { TurnTask } from './engine/turn/turn-task.js';
import { ApprovalOperations } from './sessions/approval-operations.js';
import { StatelessConversation } from './sessions/conversation/stateless-conversation.js';
import { OtherServers } from './sessions/other-servers.js';
import { SessionOperations } from './sessions/session-operations.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { IdempotencyClaims } from './sessions/store/idempotency.js';
import { childRequest, sessionOf } from './sessions/store/session-of.js';
import { SessionStorage } from './sessions/store/session-storage.js';
import { SharedRates } from './sessions/store/shared-rates.js';
import { TurnRecovery } from './sessions/turn-recovery.js';
import { assertTurnRequest } from './turn-request.js';

/** Resolves names to agents and starts turns. */
export class Runtime implements AgentRuntime {
  readonly conversations: SessionOperations;
  readonly approvals: ApprovalOperations;
  readonly cards: AgentCardOperations;
  readonly #context: PluginContext;
  readonly #agents: CurrentAgents;
  readonly #turns: RunningTurns;
  readonly #runner: TurnRunner;
  readonly #limiter: TurnLimiter;
  readonly #rates: RequestRates;
  readonly #memory: TurnMemory;
  readonly #sessions: SessionSupervisor;
  readonly #storage: SessionStorage;
  readonly #idempotency: IdempotencyClaims;
  readonly #recovery: TurnRecovery;
  readonly #sharedRates: SharedRates;
  #others: OtherServers | undefined;

  constructor(
    @inject(CONTEXT) context: PluginContext,
    @inject(CurrentAgents) agents: CurrentAgents,
    @inject(RunningTurns) turns: RunningTurns,
    @inject(TurnRunner) runner: TurnRunner,
    @inject(TurnLimiter) limiter: TurnLimiter,
    @inject(RequestRates) rates: RequestRates,
    @inject(TurnMemory) memory: TurnMemory,
    @inject(SessionSupervisor) sessions: SessionSupervisor,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(SessionOperations) conversations: SessionOperations,
    @inject(ApprovalOperations) approvals: ApprovalOperations,
    @inject(AgentCardOperations) cards: AgentCardOperations,
    @inject(IdempotencyClaims) idempotency: IdempotencyClaims,
    @inject(TurnRecovery) recovery: TurnRecovery,
    @inject(SharedRates) sharedRates: SharedRates,
  ) {
    this.#context = context;
    this.#agents = agents;
    this.#turns = turns;
    this.#runner = runner;
    this.#limiter = limiter;
    this.#rates = rates;
    this.#memory = memory;
    this.#sessions = sessions;
    this.#storage = storage;
    this.conversations = conversations;
    this.approvals = approvals;
    this.cards = cards;
    this.#idempotency = idempotency;
    this.#recovery = recovery;
    this.#sharedRates = sharedRates;
  }

  /**
   * Finds parameters that no model of an agent supports, tools that its entries do not have, and
   * agents that ask in a circle.
   */
  verify(): readonly ConfigProblem[] {
    return this.#agents.verify();
  }

  /**
   * Checks the agents' tools and recovers interrupted turns.
   * @throws ConfigFault with all problems of the tools.
   */
  async start(signal: AbortSignal): Promise<void> {
    const revision = await this.#agents.prepare(undefined, signal);
    this.#agents.activate(revision);
    await this.#recovery.start();
    this.#sharedRates.start();
  }

  /**
   * Prepares changed agents, models, tools and limits. Turns that run keep what they began with.
   * @throws ConfigFault for everything that is wrong with them.
   */
  async reconfigure(next: Reconfiguration<RuntimeSettings>, signal: AbortSignal): Promise<() => void> {
    const revision = await this.#agents.prepare(next, signal);
    return () => {
      for (const part of [this.#limiter, this.#memory, this.#sessions, this.#turns]) part.reconfigure(next.config);
      this.#agents.activate(revision);
    };
  }

  /** A person asked for a reload: the tools are accepted as they are now (S-73). */
  async reload(signal: AbortSignal): Promise<void> {
    await this.#agents.revision.toolboxes.accept(signal);
  }

  get stopLimit(): number {
    return this.#turns.stopLimit;
  }

  get drainLimit(): number {
    return this.#turns.drainLimit;
  }

  drain(): Promise<void> {
    return this.#turns.drain();
  }

  /** @throws Error if turns had to be ended. */
  stop(signal: AbortSignal, within?: number): Promise<void> {
    this.#recovery.stop();
    this.#sharedRates.stop();
    return this.#turns.stop(signal, within);
  }

  resolve(name: string, principal: Principal): TargetResolution {
    return this.#agents.revision.directory.resolve(name, principal);
  }

  list(principal: Principal): readonly TargetInfo[] {
    return this.#agents.revision.directory.list(principal);
  }

  get otherServers(): OtherServers | undefined {
    const { shared } = this.#storage.store;
    if (shared) this.#others ??= new OtherServers(this.#storage, shared);
    return this.#others;
  }

  async ready(): Promise<boolean> {
    if (this.#context.host.phase !== 'running' || this.#sessions.isUnstable) return false;
    if (!this.#agents.revision.directory.canAnswer) return false;
    return this.#storage.isWorking();
  }

  countRequest(principal: Principal): RequestCount {
    return this.#rates.count(principal, this.#agents.revision.requestsPerMinute(principal.project));
  }

  claim(key: IdempotencyKey, fingerprint: string, account: Account): Promise<ClaimResult> {
    return this.#idempotency.claim(key, fingerprint, account);
  }

  run(asked: TurnRequest): TurnEvents {
    const parent = ParentCall.of(asked);
    const refusal = this.#refusal(asked, parent);
    const own = parent ? childRequest(asked, parent) : asked;
    // Extras are data of a model connection. Callers may not send any.
    const messages = refusal ? [] : asked.hasOwnExtras ? asked.messages : withoutExtras(asked.messages);
    const request = messages === own.messages ? own : { ...own, messages };
    const id = sessionOf(request);
    // A retry with an idempotency key waits for the stored answer instead of joining the turn.
    const fingerprint = request.idempotency ? undefined : request.session?.fingerprint;
    const account = request.account ?? new Account(this.#memory.budget, request.principal);
    const joined = !refusal && id && fingerprint && this.#sessions.join(id, fingerprint, request.signal, account);
    if (joined) return joined;
    const turn = new TurnTask({
      request,
      account,
      fingerprint,
      idempotent: request.idempotency && this.#idempotency.turn(request.idempotency),
      clock: this.#context.clock,
      ids: this.#context.ids,
    });
    const events = parent ? new NestedEvents(turn.events, parent, request.target) : turn.events;
    if (refusal) turn.requestEnd(refusal);
    if (turn.hasEnded) return events; // refused, or its caller has gone already
    if (parent) parent.start(turn);
    else turn.defer(this.#turns.track(turn));
    const { lease } = parent?.options ?? {};
    if (lease && !id) turn.lease = new LentLease(lease);
    if (id) this.#sessions.submit(id, turn);
    else turn.start(() => this.#runner.run(turn, (context) => new StatelessConversation(context, this.#storage)));
    return events;
  }

  /** Why a turn is refused before it begins, if it is. */
  #refusal(request: TurnRequest, parent: ParentCall | undefined): TurnError | undefined {
    try {
      assertTurnRequest(request);
    } catch (error) {
      if (error instanceof TurnError) return error;
      throw error;
    }
    if (request.parent && !parent?.isFree) return notStartable();
    return request.account || parent ? undefined : this.countRequest(request.principal).refused;
  }
}

function notStartable(): TurnError {
  return new TurnError(
    'crashed',
    'A tool call that has ended, has a turn already, or is of a source without `asks` cannot start a turn.',
  );
}
