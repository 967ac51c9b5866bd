/** A number of permits for each owner. Those that find none wait in their order. */
export class Permits {
  readonly #permits: number;
  /** Those that run, and what starts those that wait, by owner. */
  readonly #owners = new Map<string, { running: number; readonly waiting: Set<() => void> }>();

  constructor(permits: number) {
    this.#permits = permits;
  }

  /** @returns what gives the permit back. @throws the signal's reason if it aborts first. */
  async acquire(owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const own = this.#owners.get(owner) ?? { running: 0, waiting: new Set() };
    this.#owners.set(owner, own);
    if (own.running < this.#permits) own.running += 1;
    else {
      await new Promise<void>((resolve, reject) => {
        const start = () => {
          signal.removeEventListener('abort', leave);
          resolve();
        };
        const leave = () => {
          own.waiting.delete(start);
          reject(signal.reason);
        };
        own.waiting.add(start);
        signal.addEventListener('abort', leave, { once: true });
      });
    }
    return () => {
      const [next] = own.waiting;
      if (next) {
        own.waiting.delete(next);
        next(); // it takes this permit
      } else {
        own.running -= 1;
        if (own.running === 0) this.#owners.delete(owner);
      }
    };
  }
}
