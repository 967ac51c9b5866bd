import type { AgentEvent, Clock, SessionId, Turn, TurnToolCall, TurnToolResult } from '@plugboard/kernel';
import { begin, moments } from '../diagnostics/channels.js';
import type { Agent } from '../directory/agent.js';
import { Stragglers } from './abandoned-tools.js';
import type { RepeatGuard } from './repeat-guard.js';
import { runTool, type ToolOutcome, toolError } from './tool-run.js';
import type { KnownTool, Toolbox } from './toolbox.js';

/** A call that is run here. */
export interface OwnCall {
  readonly call: TurnToolCall;
  /** Its place among all calls of the turn, from 0. */
  readonly index: number;
}

/** What the calls of one step have in common. */
interface Step {
  readonly toolbox: Toolbox;
  readonly agent: Agent;
  readonly turn: Turn;
  /** Aborted when the calls are to end. */
  readonly signal: AbortSignal;
  tell(event: AgentEvent): void;
}

/** Runs the tool calls of one step side by side. */
export class ToolBatches {
  readonly #clock: Clock;
  readonly #stragglers: Stragglers;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#stragglers = new Stragglers(clock);
  }

  /** Yields progress as it comes, and each result once those of the calls before it have been yielded. @throws the reason, when the turn ends meanwhile. */
  async *run(
    calls: readonly OwnCall[],
    toolbox: Toolbox,
    guard: RepeatGuard,
    agent: Agent,
    turn: Turn,
  ): AsyncGenerator<readonly AgentEvent[]> {
    const news: AgentEvent[] = [];
    let stirred = Promise.withResolvers<undefined>();
    const tell = (event: AgentEvent) => {
      news.push(event);
      stirred.resolve(undefined);
    };
    const left = new AbortController();
    const step = { toolbox, agent, turn, tell, signal: AbortSignal.any([turn.signal, left.signal]) };
    const results = calls.map((own) => this.#result(own, guard.repeats(own.call.name, own.call.arguments), step));
    // The first that fails ends the turn; that the others fail too is then nobody's concern.
    for (const result of results) result.catch(() => {});

    try {
      for (const result of results) {
        for (let ended = false; !ended; ) {
          const first = await Promise.race([result, stirred.promise]);
          if (news.length > 0) {
            stirred = Promise.withResolvers();
            yield news.splice(0);
          }
          if (first) {
            ended = true;
            yield [first];
          }
        }
      }
    } finally {
      // The turn may end without having been told to: an interceptor broke, say. Tools that still run then run for nobody.
      left.abort(new Error('The turn has ended.'));
    }
  }

  /** Waits until the tools of a session's earlier turns have ended, or were left behind. @throws the signal's reason when that is aborted before. */
  settled(session: SessionId, signal: AbortSignal): Promise<void> {
    return this.#stragglers.gone(session, signal);
  }

  async #result(own: OwnCall, repeats: boolean, step: Step): Promise<TurnToolResult> {
    const { call } = own;
    const started = this.#clock.monotonic();
    const headers: Record<string, string> = {};
    const span = begin('tool', () => ({
      turn: step.turn,
      id: call.id,
      entry: call.tool?.entry,
      tool: call.tool?.name,
      headers,
    }));
    try {
      const outcome = await this.#outcome(own, repeats, step, headers);
      span.tell({ isError: outcome.isError });
      span.end();
      return { type: 'tool-result', id: call.id, ...outcome, milliseconds: Math.round(this.#clock.monotonic() - started) };
    } catch (error) {
      span.fail(error);
      throw error;
    }
  }

  async #outcome(
    { call, index }: OwnCall,
    repeats: boolean,
    { toolbox, agent, turn, signal, tell }: Step,
    headers: Record<string, string>,
  ): Promise<ToolOutcome> {
    const known = toolbox.tools.get(call.name);
    if (!known) {
      const names = toolbox.declarations.map(({ name }) => name).join(', ');
      return toolError(`There is no tool "${call.name}"; ${names === '' ? 'there are none' : `there are: ${names}`}.`);
    }
    if (repeats) {
      return toolError(
        'Repeated call: the same call with the same arguments was made just before. Use its result, or try something else.',
      );
    }
    const checked = known.check(call.arguments);
    if ('fault' in checked) return toolError(checked.fault);
    const progress = (message: string, fraction?: number) => tell({ type: 'tool-progress', id: call.id, message, fraction });
    const { principal } = turn;
    const surroundings = { id: call.id, turnId: turn.id, index, agent: agent.name, principal, headers, progress };
    return runTool(known.tool, checked.input, surroundings, {
      limits: known.limits,
      seesImages: agent.input.includes('image'),
      clock: this.#clock,
      turn: signal,
      onGivenUp: (ended) => this.#stragglers.watch(turn, ended, () => leaveBehind(known, call.id, turn)),
    });
  }
}

function leaveBehind({ entry, tool: { name: tool }, log }: KnownTool, id: string, turn: Turn): void {
  moments.toolAbandoned.publish({ turn, id, entry, tool });
  log.warn(
    { entry, tool, agent: turn.agent, request_id: turn.requestId },
    'tool_abandoned: a tool was told to end, had not five seconds later, and was left behind',
  );
}
