import type { ModelEvent } from '@plugboard/kernel';

/**
 * Turns the body of one response into events.
 *
 * 1. `read` receives each piece that the socket delivers and appends events.
 * 2. Then comes either `end`, when the body is complete, or `interrupt`, when no more will come.
 * 3. An error thrown by any of them ends the answer. A `ModelError` is shown to the caller; any
 *    other error means that the body could not be read.
 */
export interface BodyReader {
  /** Whether the answer is complete. The rest of the body is then ignored. */
  readonly isDone: boolean;
  /** Bytes that it holds of what has not become events (S-75). */
  readonly held: number;
  read(chunk: Buffer, events: ModelEvent[]): void;
  end(events: ModelEvent[]): void;
  /** Throws `failure`, unless the answer is complete or a better error is known. */
  interrupt(failure: Error, events: ModelEvent[]): void;
}
