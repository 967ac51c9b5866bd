import type { ModelEvent } from '@plugboard/kernel';

/**
 * Makes events of the body of one response.
 *
 * 1. `read` is given what each read of the socket brought, and adds to `events` what it tells.
 * 2. Then either `end` says that the body is complete, or `breakOff` that nothing more will come of it.
 * 3. What they throw ends the answer. A `ModelError` is for the caller; anything else means that the body could not be read.
 */
export interface BodyReader {
  /** Whether the answer is at its end, and what may still come of the body is no part of it. */
  readonly isDone: boolean;
  read(chunk: Buffer, events: ModelEvent[]): void;
  end(events: ModelEvent[]): void;
  /** @param failure is what is to be thrown, unless the answer is there all the same, or there is something better to say. */
  breakOff(failure: Error, events: ModelEvent[]): void;
}
