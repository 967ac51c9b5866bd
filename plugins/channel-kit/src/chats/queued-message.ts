import type { Values } from '../state/channel-state.js';

/** A message that waits in its chat's queue, as it is in memory: its text is read when it runs. */
export interface QueuedMessage {
  readonly seq: string;
  /** The id of its reply. */
  readonly reply: string;
  readonly lane: string;
  /** Whether it is `/stop`. */
  readonly isStop: boolean;
  /** The answer that it ends, if it is the press of a stop button. */
  readonly stops: string | true | undefined;
  /** What removes it from the state. */
  readonly removal: Values;
  /** Gives back what it takes of the budget. */
  readonly release: (() => void) | undefined;
  /** How many crashes may have cut its turn. */
  readonly cuts: number;
  /** Whether its turn has begun, in this life or before a crash. */
  hasBegun: boolean;
  attempts: number;
  /** When the first attempt failed, on the monotonic clock. */
  failingSince: number | undefined;
}
