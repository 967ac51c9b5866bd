import type { AgentEvent, Clock, Contribution, PluginContext, ToolInterceptor, Turn } from '@plugboard/kernel';
import type { SessionId, TurnToolCall, TurnToolResult } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { eventChannels, startSpan } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { AbandonedTools } from './abandoned-tools.js';
import type { RepeatGuard } from './repeat-guard.js';
import { runTool, type ToolOutcome, toolError } from './run-tool.js';
import type { AgentTool, Toolbox } from './toolbox.js';

/** A call that the server runs. */
interface ServerCall {
  readonly call: TurnToolCall;
  /** Number of the call in the turn, from 0. */
  readonly index: number;
}

/** What the calls of a turn share. */
interface ToolContext {
  readonly toolbox: Toolbox;
  readonly guard: RepeatGuard;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly interceptors: readonly Contribution<ToolInterceptor>[];
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
   * Yields progress as it arrives and results in the order of their calls: what is there at once is
   * one batch.
   * @throws the signal's reason if the turn ends meanwhile.
   */
  async *run(calls: readonly ServerCall[], context: ToolContext): AsyncGenerator<readonly AgentEvent[]> {
    const { turn, guard } = context;
    /** Progress that has not been yielded. */
    const progress: AgentEvent[] = [];
    const results: TurnToolResult[] = [];
    let failure: { readonly error: unknown } | undefined;
    let wake = () => {};
    const emit = (event: AgentEvent) => {
      progress.push(event);
      wake();
    };
    const end = new AbortController();
    const onTurnEnd = () => end.abort(turn.signal.reason);
    turn.signal.addEventListener('abort', onTurnEnd, { once: true });
    if (turn.signal.aborted) onTurnEnd();
    const step = { ...context, emit, signal: end.signal };
    for (const [index, own] of calls.entries()) {
      this.#result(own, guard.repeats(own.call.name, own.call.arguments), step).then(
        (result) => {
          results[index] = result;
          wake();
        },
        (error) => {
          failure ??= { error };
          wake();
        },
      );
    }

    let next = 0;
    try {
      while (next < calls.length) {
        const batch = progress.splice(0);
        for (let result = results[next]; result; result = results[next]) {
          batch.push(result);
          next++;
        }
        if (batch.length > 0) yield batch;
        else if (failure) throw failure.error;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    } finally {
      turn.signal.removeEventListener('abort', onTurnEnd);
      // The reader may stop before the end, for example when an interceptor throws.
      if (next < calls.length) end.abort(new Error('The turn has ended.'));
    }
  }

  /**
   * Waits until the tools of a session's earlier turns have ended, or were abandoned.
   * @throws the signal's reason if it aborts first.
   */
  settled(session: SessionId, signal: AbortSignal): Promise<void> | undefined {
    return this.#abandonedTools.settled(session, signal);
  }

  async #result(own: ServerCall, repeats: boolean, step: Step): Promise<TurnToolResult> {
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
      const outcome = await this.#outcome(own, repeats, step, headers);
      span.set({ isError: outcome.isError });
      span.end();
      return { type: 'tool-result', id: call.id, ...outcome, milliseconds: Math.round(this.#clock.monotonic() - started) };
    } catch (error) {
      span.fail(error);
      throw error;
    }
  }

  async #outcome(
    { call, index }: ServerCall,
    repeats: boolean,
    { toolbox, agent, turn, interceptors, signal, emit }: Step,
    headers: Record<string, string>,
  ): Promise<ToolOutcome> {
    const known = toolbox.tools.get(call.name);
    if (!known) {
      const names = toolbox.declarations.map(({ name }) => name).join(', ');
      return toolError(`There is no tool "${call.name}". ${names === '' ? 'There are no tools' : `Available tools: ${names}`}.`);
    }
    if (repeats) {
      return toolError('Repeated call: this call was just made with the same arguments. Use its result or try something else.');
    }
    const checked = known.check(call.arguments);
    if ('fault' in checked) return toolError(checked.fault);
    const progress = (message: string, fraction?: number) => emit({ type: 'tool-progress', id: call.id, message, fraction });
    const { id: turnId, principal, session, requestId, metadata } = turn;
    const caller = { principal, session, requestId, metadata };
    const context = { id: call.id, turnId, index, agent: agent.name, ...caller, headers, progress };
    return runTool(known, checked.input, context, {
      interceptors,
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
