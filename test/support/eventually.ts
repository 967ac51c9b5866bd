/** Milliseconds after which what was waited for is taken not to happen. */
const PATIENCE = 20_000;

/**
 * Waits for what is about to be so, and for which there is no event to wait for. Between two looks it lets the other things of this process go on.
 *
 * @throws Error where it does not become so.
 */
export async function eventually<T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const start = performance.now();
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() - start > PATIENCE) throw new Error(`what is waited for did not happen: ${look}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
