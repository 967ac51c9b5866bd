import type { Message, Turn } from '@plugboard/kernel';
import type { Usage } from '@plugboard/kernel/contracts';
import type { PendingCalls } from './pending-calls.js';
import type { TurnContext } from './turn-context.js';

/** A turn that has begun. */
export interface BegunTurn {
  readonly turn: Turn;
  /** Tokens that were used before its first model call. */
  readonly usage: Usage | undefined;
  /** The opaque id of its session, for model servers. */
  readonly conversation: string | undefined;
  /** Its calls that outlive it, and those of earlier turns. */
  readonly pending: PendingCalls;
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
