import type { AgentEvent, Clock, Contribution, PluginContext, Principal, ToolInterceptor, Turn } from '@plugboard/kernel';
import type { TurnApproval, TurnToolCall, TurnToolResult } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { eventChannels, startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { AbandonedTools } from './abandoned-tools.js';
import { ProgressReports, withoutOldReport } from './progress.js';
import { Postponed, runTool, type ToolOutcome, toolError } from './run-tool.js';
import type { AgentTool, Toolbox } from './toolbox.js';

/** A call that the server runs. */
export interface ServerCall {
  readonly call: TurnToolCall;
  /** Number of the call in the turn, from 0. */
  readonly index: number;
  /** Whether the model made the same call too often in a row. */
  readonly isRepeated?: boolean;
  /** The result of a valid call that does not run. */
  readonly instead?: ToolOutcome | undefined;
  /** Present for a call of an earlier turn, or of a person. */
  readonly owned?: OwnedCall;
}

/** Runs a call, within the limits of its tool. */
export type CallRun = () => Promise<ToolOutcome | Postponed>;

/** A call that somebody other than the turn decides about. Tool interceptors cannot postpone it. */
export interface OwnedCall {
  /** The turn that made the call. */
  readonly turnId: string;
  /** The caller of that turn. */
  readonly principal: Principal;
  /** The only arguments that may run, as JSON. */
  readonly shown?: string;
  /** Runs the call, or says what becomes of it instead. */
  settle(tool: AgentTool | undefined, run: CallRun): Promise<ToolOutcome | TurnApproval>;
}

/** What the calls of a turn share. */
interface ToolContext {
  readonly toolbox: Toolbox;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly interceptors: readonly Contribution<ToolInterceptor>[];
  /**
   * A tool interceptor asks for a person. Returns the result of the call, or that it waits.
   * @param complete the arguments that would run, as JSON.
   */
  onPostponed(own: ServerCall, tool: AgentTool, complete: string): ToolOutcome | TurnApproval;
}

/** What the calls of one step share. */
interface Step extends ToolContext {
  /** Aborts when the calls must end. */
  readonly signal: AbortSignal;
  emit(event: AgentEvent): void;
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
   * Yields progress and results as they arrive: what is there at once is one batch.
   * @throws the signal's reason if the turn ends meanwhile.
   */
  async *run(calls: readonly ServerCall[], context: ToolContext): AsyncGenerator<readonly AgentEvent[]> {
    const { turn } = context;
    /** What has not been yielded. */
    let arrived: AgentEvent[] = [];
    let running = calls.length;
    let failure: { readonly error: unknown } | undefined;
    let wake = () => {};
    const emit = (event: AgentEvent) => {
      if (event.type === 'tool-progress') arrived = withoutOldReport(arrived, event.id);
      arrived.push(event);
      wake();
    };
    const end = new AbortController();
    const onTurnEnd = () => end.abort(turn.signal.reason);
    turn.signal.addEventListener('abort', onTurnEnd, { once: true });
    if (turn.signal.aborted) onTurnEnd();
    const step = { ...context, emit, signal: end.signal };
    for (const own of calls) {
      this.#result(own, step).then(
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
          yield batch;
        } else if (failure) throw failure.error;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      turn.signal.removeEventListener('abort', onTurnEnd);
      // The reader may stop before the end, for example when an interceptor throws.
      if (running > 0) end.abort(new Error('The turn has ended.'));
    }
  }

  /**
   * Waits until the tools of the earlier turns of a turn's session have ended, or were abandoned.
   * @throws the signal's reason if it aborts first.
   */
  settled(turn: Turn): Promise<void> | undefined {
    return this.#abandonedTools.settled(turn);
  }

  async #result(own: ServerCall, step: Step): Promise<TurnToolResult | TurnApproval> {
    const { call } = own;
    const started = this.#clock.monotonic();
    const headers: Record<string, string> = {};
    const span = startSpan('tool', () => ({
      turn: step.turn,
      id: call.id,
      entry: call.tool?.entry,
      tool: call.tool?.name,
      headers,
    }));
    try {
      const known = step.toolbox.tools.get(call.name);
      const run = () => this.#outcome(own, known, step, headers);
      const outcome = await (own.owned ? own.owned.settle(known, run) : this.#settle(own, known, run, step));
      if ('type' in outcome) {
        span.end();
        return outcome;
      }
      span.set({ isError: outcome.isError });
      span.end();
      return { type: 'tool-result', id: call.id, ...outcome, milliseconds: Math.round(this.#clock.monotonic() - started) };
    } catch (error) {
      span.fail(error);
      throw error;
    }
  }

  /** The result of a call of this turn, unless it waits. */
  async #settle(
    own: ServerCall,
    known: AgentTool | undefined,
    run: CallRun,
    { onPostponed }: Step,
  ): Promise<ToolOutcome | TurnApproval> {
    const outcome = await run();
    return outcome instanceof Postponed && known ? onPostponed(own, known, outcome.input) : (outcome as ToolOutcome);
  }

  async #outcome(
    { call, index, isRepeated, instead, owned }: ServerCall,
    known: AgentTool | undefined,
    { toolbox, agent, turn, interceptors, signal, emit }: Step,
    headers: Record<string, string>,
  ): Promise<ToolOutcome | Postponed> {
    if (!known) {
      const names = toolbox.declarations.map(({ name }) => name).join(', ');
      return toolError(`There is no tool "${call.name}". ${names === '' ? 'There are no tools' : `Available tools: ${names}`}.`);
    }
    if (isRepeated) {
      return toolError('Repeated call: this call was just made with the same arguments. Use its result or try something else.');
    }
    const checked = known.check(call.arguments);
    if ('fault' in checked) return toolError(checked.fault);
    if (instead) return instead;
    const progress = new ProgressReports(call.id, this.#clock, emit).report;
    const { session, requestId, metadata } = turn;
    const { turnId, principal } = owned ?? { turnId: turn.id, principal: turn.principal };
    const caller = { principal, session, requestId, metadata };
    const context = { id: call.id, turnId, index, agent: agent.name, ...caller, headers, progress };
    return runTool(known, checked.input, context, {
      interceptors,
      mayPostpone: owned === undefined,
      shown: owned?.shown,
      seesImages: agent.input.includes('image'),
      clock: this.#clock,
      turnSignal: signal,
      onAborted: (ended) => this.#abandonedTools.add(turn, ended, () => warnAbandoned(known, call.id, turn)),
    });
  }
}

function warnAbandoned({ entry, tool: { name: tool }, log }: AgentTool, id: string, turn: Turn): void {
  eventChannels.toolAbandoned.publish({ turn, id, entry, tool });
  log.warn(
    { event: 'tool_abandoned', entry, tool, agent: turn.agent, request_id: turn.requestId },
    'a tool still ran five seconds after it was aborted and was abandoned',
  );
}
