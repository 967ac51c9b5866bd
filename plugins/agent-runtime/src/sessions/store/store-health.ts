import { type Extensions, type Logger, type PluginContext, type SessionStore, SessionStores } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { type StoreCall, storeCalls } from './store-call.js';

/**
 * Time limit of the store's health check, in milliseconds: shorter than the timeout of a load
 * balancer's probe.
 */
const HEALTH_TIMEOUT = 2_000;

/**
 * Checks whether the session store works. Logs once why it does not, and once that it works again.
 */
export class StoreHealth {
  readonly #stores: Extensions<SessionStore>;
  readonly #storeCall: StoreCall;
  readonly #logger: Logger;
  #worked = true;

  constructor(@inject(CONTEXT) { clock, log, extensions }: PluginContext) {
    this.#stores = extensions(SessionStores);
    this.#storeCall = storeCalls(clock, HEALTH_TIMEOUT);
    this.#logger = log;
  }

  /** Never rejects: a store that throws, or does not answer in time, does not work. */
  async check(): Promise<boolean> {
    try {
      const { ok, reason = 'the store gives no reason' } = await this.#storeCall(() => this.#stores.one().health(), 'health');
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
    if (works) this.#logger.info('the session store works again');
    else this.#logger.error(fields, `the session store does not work, so the server is not ready: ${reason}`);
  }
}
