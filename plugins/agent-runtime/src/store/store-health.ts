import type { Extensions, Logger, SessionStore } from '@plugboard/kernel';
import type { StoreCall } from './store-call.js';

interface StoreHealthDependencies {
  readonly stores: Extensions<SessionStore>;
  /** Limits the time of a check. */
  readonly storeCall: StoreCall;
  readonly log: Logger;
}

/**
 * Checks whether the session store works. Logs once why it does not, and once that it works again.
 */
export class StoreHealth {
  readonly #deps: StoreHealthDependencies;
  #worked = true;

  constructor(deps: StoreHealthDependencies) {
    this.#deps = deps;
  }

  /** Never rejects: a store that throws, or does not answer in time, does not work. */
  async check(): Promise<boolean> {
    const { stores, storeCall } = this.#deps;
    try {
      const { ok, reason = 'the store gives no reason' } = await storeCall(() => stores.one().health(), 'health');
      this.#log(ok, {}, reason);
      return ok;
    } catch (error) {
      const { cause: err = error } = error as Error; // what the store threw
      this.#log(false, { err }, 'its health check failed');
      return false;
    }
  }

  #log(works: boolean, fields: object, reason: string): void {
    if (works === this.#worked) return;
    this.#worked = works;
    const { log } = this.#deps;
    if (works) log.info('the session store works again');
    else log.error(fields, `the session store does not work, so the server is not ready: ${reason}`);
  }
}
