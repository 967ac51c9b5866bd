import type { Progress } from '../state/records.js';

/** A reply that waits to be sent, as it is in memory: its text is read when it is sent. */
export interface PendingReply {
  readonly seq: string;
  readonly id: string;
  readonly lane: string;
  readonly chat: string;
  readonly pieces: number;
  readonly release: (() => void) | undefined;
  progress: Progress;
  /** Whether the next part may have been sent: an attempt failed, or the process died. */
  mayHaveArrived: boolean;
  /** Why the platform did not take the part that is next, in this life. */
  failure?: string | undefined;
  /** What the platform keeps about the reply. */
  kept: unknown;
}
