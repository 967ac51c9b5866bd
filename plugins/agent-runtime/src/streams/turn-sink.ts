import type { AgentEvent } from '@plugboard/kernel';

/** Where a turn writes its events: to one reader, or to all readers of a session. */
export interface TurnSink {
  /** Returns a promise while a reader is slow. */
  write(batch: readonly AgentEvent[]): Promise<unknown> | undefined;
  /** Whether the turn is overdue: it stops at its next batch. */
  readonly closed: boolean;
}
