import { type AgentRuntime, type Extensions, inject, injectable, LOGGER, type Logger } from '@plugboard/kernel';
import type { HttpRoute } from '@plugboard/transport-http';

/** Where the plugin's `register` leaves its reads for the class below. */
export const RUNTIMES = Symbol('transport-health.runtimes');

/** The body of every probe (service document, Health response): nothing of it tells what the server serves. */
interface Report {
  readonly status: 'ok';
  readonly service: 'plugboard';
  readonly ready: boolean;
}

/** Tells probes whether the server lives, and whether it could run a turn now. */
@injectable()
export class Health {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #log: Logger;

  constructor(@inject(RUNTIMES) runtimes: Extensions<AgentRuntime>, @inject(LOGGER) log: Logger) {
    this.#runtimes = runtimes;
    this.#log = log;
  }

  /**
   * `/health` and `/healthz` are 200 as long as the process answers; `/readyz` is for load balancers, and 503 while there is no
   * point in sending callers here.
   */
  get routes(): readonly HttpRoute[] {
    const route = { method: 'GET', access: 'public', body: 'none', startsWork: false } as const;
    const alive = async () => ({ status: 200, body: await this.#report() });
    const ready = async () => {
      const body = await this.#report();
      return { status: body.ready ? 200 : 503, body };
    };
    return [
      { ...route, path: '/health', handle: alive },
      { ...route, path: '/healthz', handle: alive },
      { ...route, path: '/readyz', handle: ready },
    ];
  }

  async #report(): Promise<Report> {
    return { status: 'ok', service: 'plugboard', ready: await this.#ready() };
  }

  /** A runtime that cannot even tell is not ready; the process lives all the same. */
  async #ready(): Promise<boolean> {
    try {
      return await this.#runtimes.one().ready();
    } catch (error) {
      this.#log.error({ err: error }, 'whether the server is ready cannot be told');
      return false;
    }
  }
}
