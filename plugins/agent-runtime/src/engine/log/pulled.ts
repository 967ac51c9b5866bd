import type { AgentEvent } from '@plugboard/kernel';

type Batch = readonly AgentEvent[];

/** Writes a batch. If it returns a promise, the writer must wait for it. */
export type WriteBatch = (batch: Batch) => Promise<unknown> | undefined;

/**
 * Makes the batches that a function writes readable, for a reader that decides how far it goes: the
 * function starts with the first read, and after each batch it waits for the next one. If the
 * reader leaves, the write fails.
 *
 * @throws what the function throws.
 */
export async function* pulled(run: (write: WriteBatch) => Promise<void>): AsyncGenerator<Batch> {
  let arrival = Promise.withResolvers<Batch | undefined>();
  let waiting: PromiseWithResolvers<void> | undefined;
  const ended = run((batch) => {
    waiting = Promise.withResolvers();
    arrival.resolve(batch);
    return waiting.promise;
  }).then(
    () => arrival.resolve(undefined),
    (error) => arrival.reject(error),
  );
  try {
    for (let batch = await arrival.promise; batch; batch = await arrival.promise) {
      yield batch;
      arrival = Promise.withResolvers();
      waiting?.resolve();
      waiting = undefined;
    }
  } finally {
    waiting?.reject(new Error('the reader of the agent loop has left'));
    await ended;
  }
}
