import type { IdSource, Message, Turn } from '@plugboard/kernel';
import type { TurnRequest, Usage } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import type { TurnMemory } from '../limits/turn-memory.js';
import type { AgentRevision } from '../revision/agent-revision.js';
import type { ToolRunner } from '../tools/tool-runner.js';
import type { Toolbox } from '../tools/toolbox.js';
import type { ParentCall } from './parent-call.js';
import type { PendingCalls } from './pending-calls.js';
import type { TurnTask } from './turn-task.js';

/** An admitted turn, and what its phases need. */
export interface TurnContext {
  readonly task: TurnTask;
  readonly agent: Agent;
  /** The tool call that started the turn, if one did. */
  readonly parent: ParentCall | undefined;
  /** The request, with the target as it is now. */
  readonly request: TurnRequest;
  readonly signal: AbortSignal;
  /** The agents, models and interceptors that the turn began with. */
  readonly revision: AgentRevision;
  /** The tools of the agent. */
  readonly toolbox: Toolbox;
  readonly ids: IdSource;
  readonly memory: TurnMemory;
  readonly tools: ToolRunner;
}

/** A turn that has begun. */
export interface BegunTurn {
  readonly turn: Turn;
  /** Tokens that were used before its first model call. */
  readonly usage: Usage | undefined;
  /** The opaque id of its session, for model servers. */
  readonly conversation: string | undefined;
  /**
   * Its calls that outlive it, and those of earlier turns. Absent if there are none and the agent
   * has no tools.
   */
  readonly pending: PendingCalls | undefined;
}

/** Opens the conversation of an admitted turn. */
export type OpenConversation = (context: TurnContext) => TurnConversation;

/**
 * Where the conversation of a turn comes from, and what keeps its answer. Called in this order:
 * `load`, `begin`, then `commit` or `abandon`.
 */
export interface TurnConversation {
  /** Whether `commit` stores anything besides an idempotency record. */
  readonly isStored: boolean;
  /** Loads the conversation and makes the turn. @throws TurnError */
  load(): Promise<Turn>;
  /** Prepares the first model call. @throws TurnError */
  begin(turn: Turn): Promise<BegunTurn>;
  /**
   * Stores the answer, and the idempotency record of the turn with it.
   * @throws TurnError if the store fails.
   */
  commit(answer: readonly Message[]): Promise<void>;
  /** Ends a turn that failed, without a trace in the conversation. Never rejects. */
  abandon(): Promise<void>;
}
