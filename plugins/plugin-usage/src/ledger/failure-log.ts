import type { Logger } from '@plugboard/kernel';

/** Logs when something begins to fail, and when it works again. */
export class FailureLog {
  readonly #log: Logger;
  readonly #fails: string;
  readonly #works: string;
  #failure: unknown;

  constructor(log: Logger, fails: string, works: string) {
    this.#log = log;
    this.#fails = fails;
    this.#works = works;
  }

  /** What failed last; undefined while it works. */
  get failure(): unknown {
    return this.#failure;
  }

  /** @param failure undefined for a success. */
  note(failure: unknown): void {
    if (failure !== undefined && this.#failure === undefined) this.#log.error({ err: failure }, this.#fails);
    if (failure === undefined && this.#failure !== undefined) this.#log.info(this.#works);
    this.#failure = failure;
  }
}
