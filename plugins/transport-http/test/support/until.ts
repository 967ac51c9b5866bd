/** Calls `look` every few milliseconds until it returns something. @throws Error after ten seconds. */
export async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  const end = performance.now() + 10_000;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > end) throw new Error(`waited ten seconds in vain for ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
