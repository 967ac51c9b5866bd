import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { injectable } from '@plugboard/kernel/injection';

/**
 * Shares of the heap limit: above the first, right after a garbage collection, the server sheds
 * load; below the second it stops.
 */
const [SHED_ABOVE, ADMIT_BELOW] = [0.85, 0.75];

interface GcDetail {
  readonly kind: number;
}

/**
 * The garbage collections that visit the whole heap
 * (`perf_hooks.constants.NODE_PERFORMANCE_GC_MAJOR`).
 */
const MAJOR = 4;

/**
 * Watches how full the heap is after each full garbage collection. Near the limit the collector
 * runs again and again and everything becomes slow, before the process ends: new work is refused
 * earlier.
 */
@injectable()
export class HeapGuard {
  #shedding = false;
  #observer: PerformanceObserver | undefined;

  /** Whether new work must be refused. */
  get shedding(): boolean {
    return this.#shedding;
  }

  start(): void {
    this.#observer = new PerformanceObserver((list) => {
      const isMajor = list.getEntries().some((entry) => 'detail' in entry && (entry.detail as GcDetail).kind === MAJOR);
      if (isMajor) this.#look();
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer?.disconnect();
  }

  #look(): void {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    this.#shedding = used > (this.#shedding ? ADMIT_BELOW : SHED_ABOVE) * limit;
  }
}
