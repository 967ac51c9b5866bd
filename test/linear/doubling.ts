/** Twice as much may take so many times as long. Quadratic work takes four times as long. */
const MAX_RATIO = 2.6;
/** Milliseconds of the processor that the larger size may take in all. */
const MAX_TIME = 100;
/** Milliseconds below which a ratio says nothing. */
const NOISE = 12;
const ATTEMPTS = 20;
/** So many pairs of runs with a good ratio are enough, too. */
const GOOD_PAIRS = 3;

/** Makes what is needed, and returns what to run: messages keep what was computed of them. */
export type Run = (n: number) => () => unknown;

/**
 * Runs something at `n` and `2n`, and takes the least time of several runs: on a busy machine, one
 * of them is not interrupted. The time in all is that of the processor, whose ticks are too long
 * for a ratio.
 *
 * @returns what is wrong: undefined if the work grows with its input.
 */
export async function faultOfDoubling(run: Run, n: number, attempts = ATTEMPTS): Promise<string | undefined> {
  let [small, large, used, good] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
  for (let attempt = 0; attempt < attempts; attempt++) {
    const twice = await timeOf(run(2 * n));
    if (twice.wall < NOISE) return undefined;
    const once = await timeOf(run(n));
    [small, large, used] = [Math.min(small, once.wall), Math.min(large, twice.wall), Math.min(used, twice.processor)];
    if (twice.wall <= MAX_RATIO * once.wall) good += 1;
    if (used <= MAX_TIME && (good >= GOOD_PAIRS || (attempt > 0 && large <= MAX_RATIO * small))) return undefined;
  }
  return `${small.toFixed(1)} ms for ${n}, ${large.toFixed(1)} ms for ${2 * n}`;
}

async function timeOf(work: () => unknown): Promise<{ readonly wall: number; readonly processor: number }> {
  const before = process.threadCpuUsage();
  const start = performance.now();
  try {
    await work();
  } catch (error) {
    // To refuse what was sent is work, too.
    if (error instanceof TypeError || error instanceof RangeError) throw error;
  }
  const wall = performance.now() - start;
  const { user, system } = process.threadCpuUsage(before);
  return { wall, processor: (user + system) / 1_000 };
}
