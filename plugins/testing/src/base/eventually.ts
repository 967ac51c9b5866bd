/** Milliseconds of real time. */
const TIMEOUT = 60_000;
const BUSY = 10;
const MAX_INTERVAL = 10;

/**
 * Polls a condition for which there is no event to wait for, and returns its value. Checks at every
 * turn of the event loop for the first 10 ms, then less and less often, and from 100 ms on every
 * 10 ms, so that other work of this process and other processes continue.
 *
 * @param check returns the value, or undefined or false until the condition holds.
 * @returns the value.
 * @throws Error after 60 seconds of real time.
 * @experimental
 */
export async function eventually<T>(check: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const start = performance.now();
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    const elapsed = performance.now() - start;
    if (elapsed > TIMEOUT) throw new Error(`not within ${TIMEOUT / 1000} s: ${check}`);
    await new Promise<void>((resolve) =>
      elapsed < BUSY ? setImmediate(resolve) : setTimeout(resolve, Math.min(elapsed / 10, MAX_INTERVAL)),
    );
  }
}
