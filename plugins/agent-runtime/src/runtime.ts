import type {
  Clock,
  Extensions,
  HostView,
  IdSource,
  Interceptor,
  Logger,
  ModelConnector,
  Principal,
  SessionStore,
  ToolSource,
} from '@plugboard/kernel';
import {
  ConfigFault,
  type ConfigProblem,
  Interceptors,
  ModelConnectors,
  parseDuration,
  parseSize,
  ToolSources,
} from '@plugboard/kernel';
import type {
  AgentRuntime,
  Budgets,
  ClaimResult,
  Conversations,
  IdempotencyKey,
  ProjectLimits,
  Reconfiguration,
  SessionId,
  SessionRequest,
  TargetInfo,
  TargetResolution,
  TurnEvents,
  TurnRequest,
} from '@plugboard/kernel/contracts';
import { heapLimit, TurnError } from '@plugboard/kernel/contracts';
import type { RuntimeSettings } from './config.js';
import { checkParams } from './directory/check-params.js';
import { withoutExtras } from './history/extra.js';
import { ActiveSet } from './lifecycle/active-set.js';
import { FailureLog } from './lifecycle/failure-log.js';
import { IdempotencyClaims } from './lifecycle/idempotency.js';
import type { TurnDependencies } from './lifecycle/turn-context.js';
import { TurnRun } from './lifecycle/turn-run.js';
import type { ConcurrencyLimiter } from './limits/concurrency-limiter.js';
import { CredentialTurnLimiter } from './limits/credential-turn-limiter.js';
import { turnLimiter, turnLimits } from './limits/turn-limiter.js';
import type { ConnectionFailures } from './model/model-calls.js';
import { SessionConversations } from './sessions/conversations.js';
import { recoverTurns } from './sessions/recovery.js';
import type { SessionHistory } from './sessions/session-history.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { storeCalls } from './store/store-call.js';
import { StoreHealth } from './store/store-health.js';
import { SETTLE_TIMEOUT } from './streams/settle-timeout.js';
import { ToolRunner } from './tools/tool-runner.js';
import { AgentRevision, type AgentRevisionOptions } from './turn/agent-revision.js';
import { runTurn } from './turn/run-turn.js';

/**
 * Time limit of the store's health check, in milliseconds: shorter than the timeout of a load
 * balancer's probe.
 */
const HEALTH_TIMEOUT = 2_000;

interface RuntimeDependencies {
  readonly settings: RuntimeSettings;
  readonly log: Logger;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly host: HostView;
  readonly budgets: Budgets;
  readonly models: Extensions<ModelConnector>;
  readonly tools: Extensions<ToolSource>;
  readonly stores: Extensions<SessionStore>;
  readonly interceptors: Extensions<Interceptor>;
  resolvePath(path: string): string;
  /** Keeps what the configuration uses from being stopped until the returned function is called. */
  hold(): () => void;
}

/** The agents of the current configuration, and what turns that begin with them need. */
interface ActiveAgents {
  readonly agents: AgentRevision;
  readonly deps: TurnDependencies;
}

/** Resolves names to agents and drives turns. */
export class Runtime implements AgentRuntime {
  readonly conversations: Conversations;
  readonly #deps: RuntimeDependencies;
  #settings: RuntimeSettings;
  readonly #turnDeps: Omit<TurnDependencies, 'models' | 'toolboxes' | 'interceptors' | 'targetOf'>;
  readonly #limiter: ConcurrencyLimiter;
  readonly #failures: ConnectionFailures = new WeakMap();
  readonly #sessions: SessionSupervisor;
  readonly #idempotency: IdempotencyClaims;
  readonly #storeHealth: StoreHealth;
  /** The turns that wait or run. */
  readonly #running = new ActiveSet<TurnRun>();
  #activated: ActiveAgents | undefined;
  /** When the server was asked to stop, in the clock's monotonic time. */
  #stopRequestedAt: number | undefined;
  #drained: Promise<void> | undefined;
  /** Turns that still ran at the limit. */
  #cut: readonly TurnRun[] = [];

  constructor(deps: RuntimeDependencies) {
    const { settings, log, clock, ids, stores } = deps;
    this.#deps = deps;
    this.#settings = settings;
    const storeCall = storeCalls(clock);
    this.#limiter = turnLimiter(settings, deps.budgets);
    this.#turnDeps = {
      host: deps.host,
      clock,
      ids,
      stores,
      storeCall,
      tools: new ToolRunner(clock),
      limiter: this.#limiter,
      credentials: new CredentialTurnLimiter(),
      failures: new FailureLog(log),
      pin: deps.hold,
    };
    const cache = deps.budgets.create({
      name: 'conversations in memory',
      unit: 'bytes',
      limit: cacheSize(settings),
      setting: 'limits.sessionCache',
    });
    this.#sessions = new SessionSupervisor(settings.limits.queuedPerSession, cache, clock, log, (turn, history) =>
      this.#runTurn(turn, history),
    );
    this.#idempotency = new IdempotencyClaims(stores, storeCall, log);
    deps.host.stopRequested.addEventListener('abort', () => {
      this.#stopRequestedAt = clock.monotonic();
    });
    this.#storeHealth = new StoreHealth({ stores, storeCall: storeCalls(clock, HEALTH_TIMEOUT), log });
    this.conversations = new SessionConversations({
      stores,
      ids,
      log,
      storeCall,
      sessions: this.#sessions,
      agents: () => this.#active.agents,
    });
  }

  /** Finds parameters that no model of an agent supports. */
  verify(): readonly ConfigProblem[] {
    return checkParams(this.#deps.settings.agents, this.#deps.models);
  }

  /**
   * Checks the agents' tools and recovers interrupted turns.
   * @throws ConfigFault with all problems of the tools.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { settings, models, tools, interceptors, stores, log } = this.#deps;
    const revision = await this.#prepare({ settings, models, tools, interceptors }, signal);
    const agents = new Map([...revision.directory.agents()].map((agent) => [agent.name, agent]));
    await recoverTurns(stores.one(), (name) => agents.get(name)?.onRestart ?? 'rollback', log);
    this.#activate(revision);
  }

  /**
   * Prepares changed agents, models, tools and limits. Turns that run keep what they began with.
   * @throws ConfigFault for everything that is wrong with them.
   */
  async reconfigure({ config, extensions }: Reconfiguration<RuntimeSettings>, signal: AbortSignal): Promise<() => void> {
    const parts = {
      settings: config,
      models: extensions(ModelConnectors),
      tools: extensions(ToolSources),
      interceptors: extensions(Interceptors),
    };
    const revision = await this.#prepare(parts, signal);
    return () => {
      this.#settings = config;
      this.#limiter.resize(turnLimits(config));
      this.#sessions.resize(config.limits.queuedPerSession, cacheSize(config));
      this.#activate(revision);
    };
  }

  /** @throws ConfigFault */
  async #prepare(
    parts: Pick<AgentRevisionOptions, 'settings' | 'models' | 'tools' | 'interceptors'>,
    signal: AbortSignal,
  ): Promise<AgentRevision> {
    const { clock, ids, log, resolvePath } = this.#deps;
    const revision = new AgentRevision({ ...parts, clock, ids, log, resolvePath, failures: this.#failures });
    const problems = await revision.problems(signal);
    if (problems.length > 0) throw new ConfigFault(problems);
    return revision;
  }

  /** Milliseconds for `stop`: for the running turns, and for those that must be ended. */
  get stopLimit(): number {
    return this.#drain + SETTLE_TIMEOUT + 1_000;
  }

  /**
   * Waits for the running turns, also for those whose caller has left, and ends those that still
   * run at the limit.
   */
  async drain(): Promise<void> {
    if (this.#stopRequestedAt !== undefined) await this.#turnsEnded();
  }

  /**
   * @param within milliseconds for all of it.
   * @throws Error if turns had to be ended.
   */
  async stop(signal: AbortSignal, within = this.stopLimit): Promise<void> {
    const limit = this.#deps.clock.after(Math.max(0, within - SETTLE_TIMEOUT), () => this.#endTurns());
    const aborted = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => aborted.resolve(), { once: true });
    await Promise.race([this.#turnsEnded(), aborted.promise]);
    limit.cancel();
    // A turn that was being stored ended as the store decided.
    const count = this.#cut.filter(({ terminal }) => terminal?.type !== 'finished').length;
    if (count === 0) return;
    const turns = count === 1 ? '1 turn was' : `${count} turns were`;
    throw new Error(`${turns} still running at the limit (\`limits.drain\`) and had to be ended`);
  }

  #turnsEnded(): Promise<void> {
    this.#drained ??= this.#drainTurns();
    return this.#drained;
  }

  async #drainTurns(): Promise<void> {
    const { clock } = this.#deps;
    const left = this.#drain - (clock.monotonic() - (this.#stopRequestedAt ?? clock.monotonic()));
    const limit = clock.after(Math.max(0, left), () => this.#endTurns());
    while (this.#running.size > 0) await Promise.all([...this.#running].map(({ ended }) => ended));
    limit.cancel();
  }

  #endTurns(): void {
    this.#cut = [...this.#running];
    for (const turn of this.#cut) turn.end(new TurnError('stopped', 'The server stopped before the agent finished.'));
  }

  resolve(name: string, principal: Principal): TargetResolution {
    return this.#active.agents.directory.resolve(name, principal);
  }

  list(principal: Principal): readonly TargetInfo[] {
    return this.#active.agents.directory.list(principal);
  }

  async ready(): Promise<boolean> {
    if (this.#deps.host.phase !== 'running' || this.#sessions.isUnstable) return false;
    if (!this.#active.agents.directory.canAnswer) return false;
    return this.#storeHealth.check();
  }

  projectLimits(project: string): ProjectLimits {
    return this.#active.agents.projectLimits(project);
  }

  claim(key: IdempotencyKey, fingerprint: string): Promise<ClaimResult> {
    return this.#idempotency.claim(key, fingerprint);
  }

  run(asked: TurnRequest): TurnEvents {
    // Extras are data of a model connection. Callers may not send any.
    const messages = withoutExtras(asked.messages);
    const request = messages === asked.messages ? asked : { ...asked, messages };
    const id = request.session && sessionOf(request, request.session);
    // A retry with an idempotency key gets the stored answer instead of joining the turn.
    const fingerprint = request.idempotency ? undefined : request.session?.fingerprint;
    const joined = id && fingerprint && this.#sessions.join(id, fingerprint, request.signal);
    if (joined) return joined;
    const turn = new TurnRun({
      request,
      fingerprint,
      idempotent: request.idempotency && this.#idempotency.turn(request.idempotency),
      clock: this.#deps.clock,
    });
    if (turn.hasEnded) return turn.events; // its caller has gone already
    this.#running.add(turn);
    turn.defer(() => this.#running.delete(turn));
    if (id) this.#sessions.submit(id, this.#deps.stores.one(), turn);
    else turn.start(() => this.#runTurn(turn, undefined));
    return turn.events;
  }

  async #runTurn(turn: TurnRun, history: SessionHistory | undefined): Promise<void> {
    await runTurn(turn, history, this.#active.deps);
  }

  /** Milliseconds that running turns have when the server stops. */
  get #drain(): number {
    return parseDuration(this.#settings.limits.drain);
  }

  get #active(): ActiveAgents {
    if (!this.#activated) throw new Error('the agent runtime has not started yet');
    return this.#activated;
  }

  #activate(agents: AgentRevision): void {
    const { models, toolboxes, interceptors } = agents;
    const targetOf = (request: TurnRequest) => agents.targetOf(request);
    this.#activated = { agents, deps: { ...this.#turnDeps, models, toolboxes, interceptors, targetOf } };
  }
}

/**
 * The session of a request. The project comes from the credential only. Equal keys of two agents
 * are two sessions.
 */
function sessionOf({ target, principal }: TurnRequest, { key }: SessionRequest): SessionId {
  return { project: principal.project, agent: target.name, key };
}

/** Bytes of conversations in memory. */
function cacheSize({ limits: { sessionCache } }: RuntimeSettings): number {
  return sessionCache === undefined ? Math.floor(heapLimit() / 8) : parseSize(sessionCache);
}
