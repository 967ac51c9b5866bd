import type { AgentEvent, Clock, Contribution, PluginContext, Principal, ToolInterceptor, Turn } from '@plugboard/kernel';
import type { TurnApproval, TurnToolCall, TurnToolResult } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { eventChannels, startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import type { WriteBatch } from '../log/pulled.js';
import { AbandonedTools } from './abandoned-tools.js';
import { Postponed, type WaitingChild } from './intercept-tool.js';
import { ProgressReports, withoutOldReport } from './progress.js';
import { type AskedTurn, type AskingCall, type NestEvents, runTool, type ToolOutcome, toolError } from './run-tool.js';
import type { AgentTool, Toolbox } from './toolbox.js';

/** Nested events of a step's calls that wait for a slow reader. Beyond it, the senders wait. */
const MAX_NESTED = 16;

export interface ServerCall {
  readonly call: TurnToolCall;
  /** Number of the call in the turn, from 0. */
  readonly index: number;
  /** The result of a call that does not run. */
  readonly instead?: ToolOutcome | undefined;
  /** Present for a call of an earlier turn. */
  readonly owned?: OwnedCall;
}

/** A call of an earlier turn, which decides itself what becomes of it. */
export interface OwnedCall {
  /** The turn that made the call. */
  readonly turnId: string;
  /** The caller of that turn. */
  readonly principal: Principal;
  /** The only arguments that may run, as JSON. Undefined: those of the call. */
  readonly shown: string | undefined;
  /** How the turn goes on that the call started, if a person had to decide about it. */
  readonly resumed?: unknown;
  /**
   * Runs the call within the limits of its tool, or says what becomes of it instead.
   * @param run receives what is known of the call if its answer was lost.
   */
  settle(
    tool: AgentTool | undefined,
    run: (lost?: ToolOutcome) => Promise<ToolOutcome | Postponed>,
  ): Promise<ToolOutcome | TurnApproval>;
}

/** Keeps the calls of a turn that may write, for the case that the process dies. */
export interface CallJournal {
  /** Stores a call before its tool runs. @throws ToolRefused if that fails: it must not run. */
  begin(call: ServerCall, tool: AgentTool): Promise<void>;
  /** Stores the outcome of a call that has begun. Never rejects. */
  end(call: ServerCall, outcome: ToolOutcome): Promise<void>;
}

interface ToolContext {
  readonly toolbox: Toolbox;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly interceptors: readonly Contribution<ToolInterceptor>[];
  /** Takes calls that interceptors let wait. Absent if none can. */
  readonly pending: PostponedCalls | undefined;
  /** A call of a tool that asks an agent begins: it may start turns until its end. */
  onAsking(asking: AskingCall): AskedTurn;
  /** Absent if no later process can go on with the calls. */
  readonly journal?: CallJournal | undefined;
  /** @throws TurnError if the turn has lost its session: no tool starts then. */
  assertLease(): void;
}

export interface PostponedCalls {
  /** Whether calls can wait. */
  readonly canWait: boolean;
  /**
   * A tool interceptor lets a call wait, or the turn that it started. Returns its result if it
   * cannot.
   * @param complete the arguments that would run, as JSON.
   */
  postpone(call: ServerCall, tool: AgentTool, complete: string, child?: WaitingChild): ToolOutcome | TurnApproval;
}

/** What calls that run at the same time share. */
interface RunningCalls extends ToolContext {
  /** Aborts when the calls must end. */
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void;
  readonly nest: NestEvents;
}

/** Runs the tool calls of one step concurrently. */
export class ToolRunner {
  readonly #clock: Clock;
  readonly #abandonedTools: AbandonedTools;

  constructor(@inject(CONTEXT) { clock }: PluginContext) {
    this.#clock = clock;
    this.#abandonedTools = new AbandonedTools(clock);
  }

  /**
   * Writes progress and results as they arrive: what is there at once is one batch.
   * @throws the signal's reason if the turn ends meanwhile, or what `write` throws.
   */
  async run(calls: readonly ServerCall[], context: ToolContext, write: WriteBatch): Promise<void> {
    const { turn } = context;
    /** What has not been written. */
    let arrived: AgentEvent[] = [];
    let running = calls.length;
    let failure: { readonly error: unknown } | undefined;
    let wake = () => {};
    const emit = (event: AgentEvent) => {
      if (event.type === 'tool-progress') arrived = withoutOldReport(arrived, event.id);
      arrived.push(event);
      wake();
    };
    /** Resolves when what waits has been taken. */
    let taken: PromiseWithResolvers<void> | undefined;
    const nest: NestEvents = (event) => {
      emit(event);
      if (arrived.length < MAX_NESTED) return undefined;
      taken ??= Promise.withResolvers();
      return taken.promise;
    };
    const end = new AbortController();
    const onTurnEnd = () => end.abort(turn.signal.reason);
    turn.signal.addEventListener('abort', onTurnEnd, { once: true });
    if (turn.signal.aborted) onTurnEnd();
    const together = { ...context, emit, nest, signal: end.signal };
    for (const own of calls) {
      this.#result(own, together).then(
        (result) => {
          running--;
          emit(result);
        },
        (error) => {
          failure ??= { error };
          wake();
        },
      );
    }

    try {
      while (running > 0 || arrived.length > 0) {
        if (arrived.length > 0) {
          const batch = arrived;
          arrived = [];
          taken?.resolve();
          taken = undefined;
          const full = write(batch);
          if (full) await full;
        } else if (failure) throw failure.error;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      turn.signal.removeEventListener('abort', onTurnEnd);
      // The write may fail, for example when an interceptor throws.
      if (running > 0) end.abort(new Error('The turn has ended.'));
      taken?.resolve();
    }
  }

  /**
   * Waits until the tools of the earlier turns of a turn's session have ended, or were abandoned.
   * @throws the signal's reason if it aborts first.
   */
  settled(turn: Turn): Promise<void> | undefined {
    return this.#abandonedTools.settled(turn);
  }

  async #result(own: ServerCall, running: RunningCalls): Promise<TurnToolResult | TurnApproval> {
    const { id, name, arguments: written, tool: asked } = own.call;
    const { turn, toolbox, pending } = running;
    const started = this.#clock.monotonic();
    const headers: Record<string, string> = {};
    const { entry, name: tool } = asked ?? {};
    const span = startSpan('tool', () => ({ turn, id, name, arguments: written, entry, tool, headers }));
    try {
      const known = toolbox.tools.get(name);
      const run = (lost?: ToolOutcome) => this.#outcome(own, known, running, headers, lost);
      let outcome = await (own.owned ? own.owned.settle(known, run) : run());
      if (outcome instanceof Postponed) {
        if (!known || !pending) throw outcome;
        outcome = pending.postpone(own, known, outcome.input, outcome.child);
      }
      if ('type' in outcome) {
        span.end();
        return outcome;
      }
      span.set({ isError: outcome.isError, content: outcome.content });
      span.end();
      return { type: 'tool-result', id, ...outcome, milliseconds: Math.round(this.#clock.monotonic() - started) };
    } catch (error) {
      span.fail(error);
      throw error;
    }
  }

  async #outcome(
    own: ServerCall,
    known: AgentTool | undefined,
    { toolbox, agent, turn, interceptors, pending, journal, signal, emit, nest, onAsking, assertLease }: RunningCalls,
    headers: Record<string, string>,
    lost: ToolOutcome | undefined,
  ): Promise<ToolOutcome | Postponed> {
    const { call, index, instead, owned } = own;
    if (!known) {
      const names = toolbox.declarations.map(({ name }) => name).join(', ');
      return toolError(`There is no tool "${call.name}". ${names === '' ? 'There are no tools' : `Available tools: ${names}`}.`);
    }
    if (instead) return instead;
    const checked = known.check(call.arguments);
    if ('fault' in checked) return toolError(checked.fault);
    const { report: progress } = new ProgressReports(call.id, this.#clock, emit);
    const { session, requestId, metadata } = turn;
    const { turnId, principal } = owned ?? { turnId: turn.id, principal: turn.principal };
    const caller = { principal, session, requestId, metadata };
    const context = { id: call.id, turnId, index, agent: agent.name, ...caller, headers, progress };
    const kept = known.effect === 'read' || owned ? undefined : journal;
    const options = {
      interceptors,
      mayPostpone: pending !== undefined && !owned,
      shown: owned?.shown,
      seesImages: agent.input.includes('image'),
      clock: this.#clock,
      turnSignal: signal,
      onAsking: (asking: Pick<AskingCall, 'call' | 'entry' | 'asks'>) => onAsking({ ...asking, nest, resumed: owned?.resumed }),
      assertLease,
      onBegin: kept && (() => kept.begin(own, known)),
      onAborted: (ended: Promise<void>) => this.#abandonedTools.add(turn, ended, () => warnAbandoned(known, call.id, turn)),
    };
    const outcome = await runTool(known, checked.input, context, options, lost);
    if (kept && !(outcome instanceof Postponed)) await kept.end(own, outcome);
    return outcome;
  }
}

function warnAbandoned({ entry, tool: { name: tool }, log }: AgentTool, id: string, turn: Turn): void {
  eventChannels.toolAbandoned.publish({ turn, id, entry, tool });
  log.warn(
    { event: 'tool_abandoned', entry, tool, agent: turn.agent, request_id: turn.requestId },
    'a tool still ran five seconds after it was aborted and was abandoned',
  );
}
