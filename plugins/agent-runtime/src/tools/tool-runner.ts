import type { AgentEvent, Clock, Contribution, PluginContext, Principal, ToolInterceptor, Turn } from '@plugboard/kernel';
import type { SessionId, TurnApproval, TurnToolCall, TurnToolResult } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { eventChannels, startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { AbandonedTools } from './abandoned-tools.js';
import { completeArguments } from './complete-arguments.js';
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
  /** Present if a person approved the call, which an earlier turn made. */
  readonly approved?: ApprovedCall;
}

/** A call of an earlier turn that a person approved. */
export interface ApprovedCall {
  /** The turn that made the call. */
  readonly turnId: string;
  /** The caller of that turn. */
  readonly principal: Principal;
  /** The arguments that were shown, and run, as JSON. */
  readonly arguments?: string;
  /** Runs the call once, however often the turn is run. @param work what runs it. */
  once(work: () => Promise<ToolOutcome | TurnApproval>): Promise<ToolOutcome | TurnApproval>;
  /** Lets the call wait again, because other arguments would run than were shown. */
  askAgain(changed: string): TurnApproval;
  /** The call is about to run. Returns its result if it must not run. */
  begin(tool: AgentTool | undefined): Promise<ToolOutcome | undefined>;
  /** The call has a result. */
  end(outcome: ToolOutcome): Promise<void>;
}

/** Where calls wait for a person's approval. */
export interface ApprovalDesk {
  /** Why no call can wait, as the result of the call. */
  readonly refusal: ToolOutcome | undefined;
  /** Lets a call wait. */
  ask(call: ServerCall, tool: AgentTool): TurnApproval;
}

/** What the calls of a turn share. */
interface ToolContext {
  readonly toolbox: Toolbox;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly interceptors: readonly Contribution<ToolInterceptor>[];
  readonly approvals: ApprovalDesk;
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
   * Waits until the tools of a session's earlier turns have ended, or were abandoned.
   * @throws the signal's reason if it aborts first.
   */
  settled(session: SessionId, signal: AbortSignal): Promise<void> | undefined {
    return this.#abandonedTools.settled(session, signal);
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
      const outcome = await (own.approved
        ? this.#approvedOutcome(own.approved, own, step, headers)
        : this.#outcome(own, step, headers));
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

  /** The result of an approved call, which is kept before anybody receives it. */
  #approvedOutcome(
    approved: ApprovedCall,
    own: ServerCall,
    step: Step,
    headers: Record<string, string>,
  ): Promise<ToolOutcome | TurnApproval> {
    return approved.once(async () => {
      const known = await approved.begin(step.toolbox.tools.get(own.call.name));
      const outcome = known ?? (await this.#outcome(own, step, headers));
      if (!('type' in outcome)) await approved.end(outcome);
      return outcome;
    });
  }

  async #outcome(
    own: ServerCall,
    { toolbox, agent, turn, interceptors, approvals, signal, emit }: Step,
    headers: Record<string, string>,
  ): Promise<ToolOutcome | TurnApproval> {
    const { call, index, isRepeated, approved } = own;
    const known = toolbox.tools.get(call.name);
    if (!known) {
      const names = toolbox.declarations.map(({ name }) => name).join(', ');
      return toolError(`There is no tool "${call.name}". ${names === '' ? 'There are no tools' : `Available tools: ${names}`}.`);
    }
    if (isRepeated) {
      return toolError('Repeated call: this call was just made with the same arguments. Use its result or try something else.');
    }
    const checked = known.check(call.arguments);
    if ('fault' in checked) return toolError(checked.fault);
    if (!approved && approvals.refusal && agent.approves(known)) return approvals.refusal;
    const progress = new ProgressReports(call.id, this.#clock, emit).report;
    const { session, requestId, metadata } = turn;
    // An approved call is still that of the turn which made it.
    const { turnId, principal } = approved ?? { turnId: turn.id, principal: turn.principal };
    const caller = { principal, session, requestId, metadata };
    const context = { id: call.id, turnId, index, agent: agent.name, ...caller, headers, progress };
    const outcome = await runTool(known, checked.input, context, {
      interceptors,
      isApproved: approved !== undefined,
      shown: approved?.arguments,
      seesImages: agent.input.includes('image'),
      clock: this.#clock,
      turnSignal: signal,
      onAborted: (ended) => this.#abandonedTools.add(turn, ended, () => warnAbandoned(known, call.id, turn)),
    });
    if (!(outcome instanceof Postponed)) return outcome;
    if (approved) return approved.askAgain(outcome.input);
    const complete = completeArguments(checked.input, known.tool.inputSchema);
    return approvals.refusal ?? approvals.ask({ ...own, call: { ...call, arguments: complete } }, known);
  }
}

function warnAbandoned({ entry, tool: { name: tool }, log }: AgentTool, id: string, turn: Turn): void {
  eventChannels.toolAbandoned.publish({ turn, id, entry, tool });
  log.warn(
    { event: 'tool_abandoned', entry, tool, agent: turn.agent, request_id: turn.requestId },
    'a tool still ran five seconds after it was aborted and was abandoned',
  );
}
