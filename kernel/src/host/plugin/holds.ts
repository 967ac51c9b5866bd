import type { Exclusive } from './exclusive.js';
import type { Holds } from './state.js';

/** Names that are held in this process, in the order in which they were asked for. */
export class LocalHolds implements Holds {
  static readonly #byStore = new WeakMap<object, LocalHolds>();
  /** By name: resolves when the last one in line has left it. */
  readonly #lines = new Map<string, Promise<void>>();

  /** What is held beside a store. The entries of a reload share it. */
  static of(store: object): LocalHolds {
    const holds = LocalHolds.#byStore.get(store) ?? new LocalHolds();
    LocalHolds.#byStore.set(store, holds);
    return holds;
  }

  /** @throws the signal's reason */
  async hold(name: string, signal: AbortSignal): Promise<Exclusive> {
    signal.throwIfAborted();
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const before = this.#lines.get(name);
    const line = before === undefined ? left : before.then(() => left);
    this.#lines.set(name, line);
    void line.then(() => {
      if (this.#lines.get(name) === line) this.#lines.delete(name);
    });
    try {
      if (before) await unlessAborted(before, signal);
    } catch (error) {
      leave();
      throw error;
    }
    return { signal: new AbortController().signal, release: async () => leave() };
  }
}

async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  void work.then(resolve);
  try {
    await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
