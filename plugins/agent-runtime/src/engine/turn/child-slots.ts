/** A call that starts a turn, as the places know it. */
export interface SlotHolder {
  hasSlot: boolean;
  /** The closest call of the same entry above it that runs. */
  readonly lender: SlotHolder | undefined;
}

interface Waiter {
  readonly holder: SlotHolder;
  grant(): void;
}

/**
 * The places of the calls of one entry in a tree of turns (`maxChildren`). A call lends its place
 * to one below it, for which it waits: agents that ask themselves would otherwise wait for each
 * other forever.
 */
export class ChildSlots {
  #free: number;
  /** The oldest first. */
  readonly #waiting: Waiter[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  /**
   * Takes a place. Returns undefined if one was free.
   * @throws the signal's reason if it aborts first.
   */
  take(holder: SlotHolder, signal: AbortSignal): Promise<void> | undefined {
    if (this.#tryTake(holder)) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const onAbort = () => {
      this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
      reject(signal.reason);
    };
    const waiter: Waiter = {
      holder,
      grant() {
        signal.removeEventListener('abort', onAbort);
        resolve();
      },
    };
    this.#waiting.push(waiter);
    signal.addEventListener('abort', onAbort, { once: true });
    return promise;
  }

  /** Gives a place back: to the call that lent it, or to all. */
  release(holder: SlotHolder): void {
    if (!holder.hasSlot) return; // it is lent, and this call ends first
    holder.hasSlot = false;
    const { lender } = holder;
    if (lender && !lender.hasSlot) lender.hasSlot = true;
    else this.#free++;
    const next = this.#waiting.findIndex((waiter) => this.#tryTake(waiter.holder));
    if (next >= 0) this.#waiting.splice(next, 1)[0]?.grant();
  }

  #tryTake(holder: SlotHolder): boolean {
    const { lender } = holder;
    if (lender?.hasSlot) lender.hasSlot = false;
    else if (this.#free > 0) this.#free--;
    else return false;
    holder.hasSlot = true;
    return true;
  }
}
