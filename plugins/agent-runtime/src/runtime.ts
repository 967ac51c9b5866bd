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
  type AgentEvent,
  ConfigFault,
  type ConfigProblem,
  Interceptors,
  ModelConnectors,
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
  SessionRequest,
  TargetInfo,
  TargetResolution,
  Timer,
  TurnRequest,
} from '@plugboard/kernel/contracts';
import {
  type ActiveMember,
  ActiveSet,
  type AgentEvents,
  type FailureCode,
  failed,
  failureOf,
  heapLimit,
  isTerminal,
  TurnError,
  withoutExtras,
} from '@plugboard/kernel/contracts';
import type { RuntimeSettings } from './config.js';
import { startSpan } from './diagnostics/channels.js';
import { agentForRequest } from './directory/agent.js';
import { checkParams } from './directory/check-params.js';
import { SessionConversations } from './sessions/conversations.js';
import { recoverTurns } from './sessions/recovery.js';
import type { SessionTurn } from './sessions/session-actor.js';
import type { SessionHistory } from './sessions/session-history.js';
import { SessionSupervisor } from './sessions/session-supervisor.js';
import { storeCalls } from './sessions/store-call.js';
import { StoreHealth } from './sessions/store-health.js';
import { batchChannel } from './streams/batch-channel.js';
import { callerDisconnected } from './streams/broadcast.js';
import { SETTLE_TIMEOUT } from './streams/settle-timeout.js';
import type { TurnSink } from './streams/turn-sink.js';
import { ToolRunner } from './tools/tool-runner.js';
import { AgentRevision, type AgentRevisionOptions } from './turn/agent-revision.js';
import type { ConcurrencyLimiter } from './turn/concurrency-limiter.js';
import { CredentialTurnLimiter } from './turn/credential-turn-limiter.js';
import { IdempotencyClaims, type IdempotentTurn } from './turn/idempotency.js';
import type { ConnectionFailures } from './turn/model-calls.js';
import { runTurn, type TurnDependencies } from './turn/run-turn.js';
import { turnLimiter, turnLimits } from './turn/turn-limiter.js';
import { TurnOutput } from './turn/turn-output.js';

/**
 * Time limit of the store's health check, in milliseconds: shorter than the timeout of a load
 * balancer's probe.
 */
const HEALTH_TIMEOUT = 2_000;

/**
 * Failures that are logged as warnings. The others are caused by the caller, or are in the access
 * log.
 */
const WARNED_FAILURES: ReadonlySet<FailureCode> = new Set(['model_failed', 'timed_out', 'store_failed']);

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

/** A stateless turn that runs. */
interface RunningTurn extends ActiveMember {
  readonly abort: AbortController;
  /** Resolves when it has ended. */
  ended: Promise<unknown>;
}

/** Resolves names to agents and drives turns. */
export class Runtime implements AgentRuntime {
  readonly conversations: Conversations;
  readonly #deps: RuntimeDependencies;
  readonly #turnDeps: Omit<TurnDependencies, 'models' | 'toolboxes' | 'interceptors'>;
  readonly #limiter: ConcurrencyLimiter;
  readonly #failures: ConnectionFailures = new WeakMap();
  readonly #sessions: SessionSupervisor;
  readonly #idempotency: IdempotencyClaims;
  readonly #storeHealth: StoreHealth;
  readonly #credentials = new CredentialTurnLimiter();
  readonly #running = new ActiveSet<RunningTurn>();
  #activated: ActiveAgents | undefined;

  constructor(deps: RuntimeDependencies) {
    const { settings, log, clock, ids, stores } = deps;
    this.#deps = deps;
    const storeCall = storeCalls(clock);
    this.#limiter = turnLimiter(settings, deps.budgets);
    this.#turnDeps = { storeCall, clock, ids, stores, tools: new ToolRunner(clock), limiter: this.#limiter };
    const cache = deps.budgets.create({
      name: 'conversations in memory',
      unit: 'bytes',
      limit: cacheSize(settings),
      setting: 'limits.sessionCache',
    });
    this.#sessions = new SessionSupervisor(settings.limits.queuedPerSession, cache, clock, log);
    this.#idempotency = new IdempotencyClaims(stores, storeCall, log);
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

  /** Ends the running turns and waits for them. */
  async stop(signal: AbortSignal): Promise<void> {
    const reason = new TurnError('stopped', 'The server stopped before the agent finished.');
    const running = [...this.#running];
    for (const { abort } of running) abort.abort(reason);
    const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([Promise.all([this.#sessions.end(reason), ...running.map(({ ended }) => ended)]), over]);
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

  run(asked: TurnRequest): AgentEvents {
    // Extras are data of a model connection. Callers may not send any.
    const messages = withoutExtras(asked.messages);
    const request = messages === asked.messages ? asked : { ...asked, messages };
    const idempotent = request.idempotency && this.#idempotency.turn(request.idempotency);
    return request.session ? this.#runInSession(request, request.session, idempotent) : this.#runStateless(request, idempotent);
  }

  /**
   * Runs a turn without a session. It ends when its reader leaves, and no longer counts as running
   * if it is overdue: aborted, and not settled in time.
   */
  #runStateless(request: TurnRequest, idempotent: IdempotentTurn | undefined): AgentEvents {
    const abort = new AbortController();
    const running: RunningTurn = { place: -1, abort, ended: Promise.resolve() };
    // A retry can fetch the answer of a turn with an idempotency key, so that turn may continue
    // without a reader.
    const outlivesReader = idempotent !== undefined && request.target.onDisconnect === 'continue';
    const leave = () => {
      if (!outlivesReader) abort.abort(callerDisconnected());
    };
    const channel = batchChannel(leave);
    const end = () => (request.signal.reason instanceof TurnError ? abort.abort(request.signal.reason) : leave());
    let settling: Timer | undefined;
    const over = () => {
      settling?.cancel();
      request.signal.removeEventListener('abort', end);
      this.#running.delete(running);
    };
    abort.signal.addEventListener('abort', () => {
      channel.removeLimit();
      settling = this.#deps.clock.after(SETTLE_TIMEOUT, () => {
        over();
        const overdue = failed(failureOf(abort.signal.reason, true));
        idempotent?.drop(overdue);
        channel.write([overdue]);
        channel.end();
      });
    });
    if (request.signal.aborted) end();
    else request.signal.addEventListener('abort', end, { once: true });
    const sink: TurnSink = {
      closed: false,
      write(batch) {
        const full = channel.write(batch);
        const last = batch.at(-1);
        // Ends the channel with the terminal event: a reader that stops there has not left early.
        if (last && isTerminal(last)) channel.end();
        return full;
      },
    };
    this.#running.add(running);
    running.ended = this.#drive(request, undefined, idempotent, abort, sink).then(over);
    return channel;
  }

  /** Runs a turn in its session, after the earlier turns of that session. */
  #runInSession(
    request: TurnRequest,
    { key, busy, fingerprint }: SessionRequest,
    idempotent: IdempotentTurn | undefined,
  ): AgentEvents {
    const { target, principal, signal } = request;
    // The project comes from the credential only. Equal keys of two agents are two sessions.
    const id = { project: principal.project, agent: target.name, key };
    const turn: SessionTurn = {
      // A retry with an idempotency key gets the stored answer instead of joining the turn.
      fingerprint: idempotent ? undefined : fingerprint,
      onBusy: busy ?? target.onBusy,
      outlivesReaders: target.onDisconnect === 'continue',
      run: (history, abort, sink) => this.#drive(request, history, idempotent, abort, sink),
      onDropped: (end) => idempotent?.drop(end),
    };
    return this.#sessions.submit(id, this.#deps.stores.one(), turn, signal);
  }

  /**
   * Drives a turn to its end and writes its events to the sink. Never rejects: every failure is the
   * terminal `failed` event.
   *
   * @returns the terminal event, or undefined if the sink was closed before it.
   */
  async #drive(
    request: TurnRequest,
    history: SessionHistory | undefined,
    idempotent: IdempotentTurn | undefined,
    abort: AbortController,
    sink: TurnSink,
  ): Promise<AgentEvent | undefined> {
    const { agents, deps } = this.#active;
    const releaseEntries = this.#deps.hold();
    const span = startSpan('turn', () => ({ request }));
    const output = new TurnOutput(sink, span, idempotent);
    try {
      if (this.#deps.host.phase === 'stopping') throw new TurnError('draining', 'The server is stopping.', { retryAfter: 1 });
      abort.signal.throwIfAborted();
      const release = this.#credentials.acquire(request.principal);
      try {
        // A reload may have replaced the target since it was resolved, for example while the turn
        // was in the queue.
        const target = agents.targetOf(request);
        const current = target === request.target ? request : { ...request, target };
        await runTurn(agentForRequest(current), current, history, idempotent, abort, deps, output);
      } finally {
        release();
      }
    } catch (error) {
      this.#logFailure(error, request);
      if (!output.end && !output.closed) await output.write([failed(failureOf(error, output.toolsRan))]);
    } finally {
      idempotent?.end();
      releaseEntries();
    }
    span.end();
    return output.end;
  }

  get #active(): ActiveAgents {
    if (!this.#activated) throw new Error('the agent runtime has not started yet');
    return this.#activated;
  }

  #activate(agents: AgentRevision): void {
    const { models, toolboxes, interceptors } = agents;
    this.#activated = { agents, deps: { ...this.#turnDeps, models, toolboxes, interceptors } };
  }

  #logFailure(error: unknown, request: TurnRequest): void {
    const fields = { err: error, request_id: request.requestId, agent: request.target.name };
    if (!(error instanceof TurnError)) this.#deps.log.error(fields, 'a turn crashed');
    else if (WARNED_FAILURES.has(error.code)) this.#deps.log.warn(fields, 'a turn failed');
    else this.#deps.log.debug(fields, 'a turn ended early');
  }
}

/** Bytes of conversations in memory. */
function cacheSize({ limits: { sessionCache } }: RuntimeSettings): number {
  return sessionCache === undefined ? Math.floor(heapLimit() / 8) : parseSize(sessionCache);
}
