import type { AgentEvent, Message } from '@plugboard/kernel';
import type { TurnApproval, TurnText } from '@plugboard/kernel/contracts';
import type { RepeatedCall } from '../tools/repeat-guard.js';
import type { ToolOutcome } from '../tools/run-tool.js';
import type { CallJournal, PostponedCalls, ServerCall } from '../tools/tool-runner.js';
import type { AgentTool } from '../tools/toolbox.js';

/** What a turn has used of its agent's limits. */
export interface Spent {
  readonly steps: number;
  readonly toolCalls: number;
  readonly tokens: number;
  /** The limit of tool calls of its request, or the agent's. */
  readonly maxToolCalls?: number | undefined;
  /** Its last call, for the guard against repeated calls. */
  readonly repeated?: RepeatedCall | undefined;
}

export const NOTHING_SPENT: Spent = { steps: 0, toolCalls: 0, tokens: 0 };

/** What a turn begins with. */
export interface Opening {
  /** What the server says first. */
  readonly events: readonly AgentEvent[];
  /** Whether the turn ends with that: nothing runs until a person or the caller says something. */
  readonly isOver: boolean;
  /** Calls of an earlier turn, which run before the first model call. */
  readonly calls: readonly ServerCall[];
}

/** Whether a turn begins without calls of earlier turns. */
export function isEmpty({ events, isOver, calls }: Opening): boolean {
  return !isOver && events.length === 0 && calls.length === 0;
}

/**
 * The calls of a conversation that outlive their turn, as the agent loop sees them: why a call
 * waits is not its matter.
 *
 * 1. Before the first step, the loop asks for the `opening`: what has become of the calls that were
 *    open, and which of them run now.
 * 2. The calls of each step pass `admit` before they run. One that does not run has a result, or
 *    waits; so may one that an interceptor postpones while it runs.
 * 3. After each step, the turn ends if there is a `closing`: it says what waits now.
 *
 * An interceptor may run the loop several times; the calls are the same ones each time.
 */
export interface PendingCalls extends PostponedCalls {
  /** What the turns before have used of the agent's limits, if this one goes on. */
  readonly spent: Spent;
  readonly opening: Opening;
  /** Keeps the calls of this turn. Absent if no later process can go on with them. */
  readonly journal: CallJournal | undefined;
  /** Whether calls of these tools may wait. */
  mayWait(tools: Iterable<AgentTool>): boolean;
  /** A step makes calls. @param using what the turn has used with them. */
  beginStep(using: Spent): void;
  /** What becomes of a call instead of running; undefined if it runs. */
  admit(call: ServerCall, tool: AgentTool | undefined): ToolOutcome | TurnApproval | undefined;
  /** The server's text about those of these calls that wait now; undefined if none does. */
  closing(callIds: readonly string[]): TurnText | undefined;
  /** The conversation with the results of calls of an earlier turn in their places. */
  withResults(conversation: readonly Message[], results: readonly Message[]): readonly Message[];
  /** Leaves out what readers know of these calls: a turn that is run again reports them again. */
  reportedOnce(batch: readonly AgentEvent[]): readonly AgentEvent[];
}
