import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import type { Clock, PluginContext } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';

/** Shares of the heap limit: load is shed above the first, until it is below the second. */
const [SHED_ABOVE, ADMIT_BELOW] = [0.85, 0.75];

/** Milliseconds between two looks at the heap while load is shed. */
const INTERVAL = 1_000;

/**
 * Milliseconds without a full collection after which work is admitted. A heap that is short of
 * memory is collected again and again; if it is not, part of what it uses may be garbage that
 * nobody has asked V8 to find.
 */
const MAX_QUIET = 10_000;

interface GcDetail {
  readonly kind: number;
}

/** Collections of the whole heap (`perf_hooks.constants.NODE_PERFORMANCE_GC_MAJOR`). */
const MAJOR = 4;

/** Bytes. */
interface HeapUse {
  readonly used: number;
  readonly limit: number;
}

/**
 * Watches how full the heap is after each full garbage collection. Near the limit the collector
 * runs again and again and everything becomes slow, before the process ends: new work is refused
 * earlier. While it is refused, the heap is looked at every second: V8 frees most of what a
 * collection found later, and may not collect again without work.
 */
export class HeapGuard {
  readonly #clock: Clock;
  readonly #heapUse: () => HeapUse;
  #observer: PerformanceObserver | undefined;
  /** Looks at the heap while load is shed. */
  #timer: Timer | undefined;
  /** Time of the last full collection, on the clock's monotonic scale. */
  #collectedAt = 0;

  /** @param heapUse measures the heap. */
  constructor(@inject(CONTEXT) { clock }: Pick<PluginContext, 'clock'>, heapUse: () => HeapUse = measure) {
    this.#clock = clock;
    this.#heapUse = heapUse;
  }

  /** Whether new work must be refused. */
  get shedding(): boolean {
    return this.#timer !== undefined;
  }

  start(): void {
    this.#observer = new PerformanceObserver((list) => {
      const isMajor = list.getEntries().some((entry) => 'detail' in entry && (entry.detail as GcDetail).kind === MAJOR);
      if (isMajor) this.onFullCollection();
    });
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  stop(): void {
    this.#observer?.disconnect();
    this.#admit();
  }

  /** Called after each full garbage collection. */
  onFullCollection(): void {
    this.#collectedAt = this.#clock.monotonic();
    if (this.#share() > SHED_ABOVE) this.#timer ??= this.#clock.after(INTERVAL, () => this.#look());
    else this.#admitIfFree();
  }

  #look(): void {
    if (this.#clock.monotonic() - this.#collectedAt >= MAX_QUIET) this.#admit();
    else this.#admitIfFree();
    this.#timer?.refresh();
  }

  #admitIfFree(): void {
    if (this.#share() <= ADMIT_BELOW) this.#admit();
  }

  #admit(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #share(): number {
    const { used, limit } = this.#heapUse();
    return used / limit;
  }
}

function measure(): HeapUse {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return { used, limit };
}
