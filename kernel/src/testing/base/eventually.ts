const TIMEOUT = 20_000;

/**
 * Polls a condition for which there is no event to wait for, and returns its value. Other work of
 * this process continues between the checks.
 *
 * @param check returns the value, or undefined or false until the condition holds.
 * @returns the value.
 * @throws Error after 20 seconds of real time.
 * @experimental
 */
export async function eventually<T>(check: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const start = performance.now();
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (performance.now() - start > TIMEOUT) throw new Error(`not within ${TIMEOUT / 1000} s: ${check}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
