import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/** Bytes: two halves of 8 MiB. What that costs is in docs/reference/performance.md, Settings. */
const MAX_SIZE = 16 * 2 ** 20;

/**
 * Bounds the memory for new objects, which V8 doubles under load, up to 128 MiB.
 *
 * V8 reads `--max-semi-space-size` only when the process begins, and `--semi-space-growth-factor`
 * whenever it would grow: with 1 it does not. The factor is set after each collection, because V8
 * makes the memory of an idle server smaller, and a new thread resets the factor to 2. An option of
 * the operator counts instead.
 */
export function boundYoungGeneration(): void {
  const options = [...process.execArgv, process.env.NODE_OPTIONS].join(' ');
  if (/semi[-_]space/.test(options)) return;
  new PerformanceObserver(() => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    const mayGrow = young !== undefined && young.space_size < MAX_SIZE;
    setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);
  }).observe({ entryTypes: ['gc'] });
}
