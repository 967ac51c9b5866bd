import type { Clock } from '../host/ambient.js';
import type { Agent } from './agent.js';
import { begin } from './diagnostics.js';
import type { AgentEvent, TurnToolCall, TurnToolResult } from './event.js';
import type { RepeatGuard } from './repeat-guard.js';
import { runTool, type ToolOutcome, toolError } from './tool-run.js';
import type { Toolbox } from './toolbox.js';
import type { Turn } from './turn.js';

/** Runs the tool calls of one step side by side. */
export class ToolBatches {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Yields progress as it comes, and each result once those of the calls before it have been yielded. @throws the reason, when the turn ends meanwhile. */
  async *run(
    calls: readonly TurnToolCall[],
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
    const results = calls.map((call) => this.#result(call, toolbox, guard.repeats(call.name, call.arguments), agent, turn, tell));
    // The first that fails ends the turn; that the others fail too is then nobody's concern.
    for (const result of results) result.catch(() => {});

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
  }

  async #result(
    call: TurnToolCall,
    toolbox: Toolbox,
    repeats: boolean,
    agent: Agent,
    turn: Turn,
    tell: (event: AgentEvent) => void,
  ): Promise<TurnToolResult> {
    const started = this.#clock.monotonic();
    const headers: Record<string, string> = {};
    const span = begin('tool', () => ({ turn, id: call.id, entry: call.tool?.entry, tool: call.tool?.name, headers }));
    try {
      const outcome = await this.#outcome(call, toolbox, repeats, agent, turn, headers, tell);
      span.tell({ isError: outcome.isError });
      span.end();
      return { type: 'tool-result', id: call.id, ...outcome, milliseconds: Math.round(this.#clock.monotonic() - started) };
    } catch (error) {
      span.fail(error);
      throw error;
    }
  }

  async #outcome(
    call: TurnToolCall,
    toolbox: Toolbox,
    repeats: boolean,
    agent: Agent,
    turn: Turn,
    headers: Record<string, string>,
    tell: (event: AgentEvent) => void,
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
    const surroundings = { id: call.id, turnId: turn.id, agent: agent.name, principal: turn.principal, headers, progress };
    const seesImages = agent.input.includes('image');
    return runTool(known.tool, checked.input, surroundings, known.limits, seesImages, turn.signal, this.#clock);
  }
}
