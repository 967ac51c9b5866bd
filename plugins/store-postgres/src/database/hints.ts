import type { Clock } from '@plugboard/kernel';

/** Resolves after so many milliseconds, or when the signal aborts. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = () => resolve();
  const timer = clock.after(ms, wake);
  signal.addEventListener('abort', wake);
  await promise;
  timer.cancel();
  signal.removeEventListener('abort', wake);
}

/** Wakes waits early. Without a hint they end too, a little later. */
export class Hints {
  readonly #clock: Clock;
  readonly #expected = new Map<string, Set<Hint>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Expects hints of a key from now on: one between two waits is not lost. */
  expect(key: string): Hint {
    const hints = this.#expected.get(key) ?? new Set();
    this.#expected.set(key, hints);
    const hint: Hint = new Hint(this.#clock, () => {
      hints.delete(hint);
      if (hints.size === 0) this.#expected.delete(key);
    });
    hints.add(hint);
    return hint;
  }

  wake(key: string): void {
    for (const hint of this.#expected.get(key) ?? []) hint.give();
  }
}

/** Hints of one key. */
export class Hint {
  readonly #clock: Clock;
  readonly close: () => void;
  #given = new AbortController();

  constructor(clock: Clock, close: () => void) {
    this.#clock = clock;
    this.close = close;
  }

  give(): void {
    this.#given.abort();
  }

  /** Waits for a hint, or so many milliseconds. @throws the reason of the signal */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    await pause(this.#clock, ms, AbortSignal.any([signal, this.#given.signal]));
    if (this.#given.signal.aborted) this.#given = new AbortController();
    signal.throwIfAborted();
  }
}
