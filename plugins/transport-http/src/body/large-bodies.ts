import type { Clock, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';

type Begin = () => void;

/**
 * Lets large bodies pass one at a time, so that other requests are served between them (S-62).
 *
 * 1. `pass` resolves when it is the body's turn. Callers take turns, each with its oldest body.
 * 2. The body is parsed, and what its route does at once is done, in the same turn of the event
 *    loop.
 * 3. The next body follows after a pause of the length that this took.
 */
export class LargeBodies {
  readonly #clock: Clock;
  /** The bodies of each caller that wait, in the order of the callers' turns. */
  readonly #waiting = new Map<string, Begin[]>();
  #isBusy = false;

  constructor(@inject(CONTEXT) { clock }: Pick<PluginContext, 'clock'>) {
    this.#clock = clock;
  }

  pass(caller: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(caller);
    if (queue) queue.push(resolve);
    else this.#waiting.set(caller, [resolve]);
    if (!this.#isBusy) this.#next();
    return promise;
  }

  #next(): void {
    const begin = this.#take();
    this.#isBusy = begin !== undefined;
    if (!begin) return;
    const begun = this.#clock.monotonic();
    begin();
    setImmediate(() => {
      const taken = this.#clock.monotonic() - begun;
      if (taken > 0) this.#clock.after(taken, () => this.#next());
      else this.#next();
    });
  }

  #take(): Begin | undefined {
    const [caller = '', queue = []] = this.#waiting.entries().next().value ?? [];
    const begin = queue.shift();
    this.#waiting.delete(caller);
    if (queue.length > 0) this.#waiting.set(caller, queue); // behind the other callers
    return begin;
  }
}
