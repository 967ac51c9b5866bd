import type { Extensions, HostView, Logger } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import type { HttpRoute } from '@plugboard/transport-http';

/** The body of every probe (C-160). Reveals nothing about what the server serves (C-143). */
export interface Report {
  readonly status: 'ok';
  readonly service: 'plugboard';
  readonly ready: boolean;
}

/** Answers probes: whether the process is alive, and whether it can run a turn. */
export class HealthRoutes {
  readonly #host: HostView;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #log: Logger;

  constructor(host: HostView, runtimes: Extensions<AgentRuntime>, log: Logger) {
    this.#host = host;
    this.#runtimes = runtimes;
    this.#log = log;
  }

  /**
   * `/health` and `/healthz` answer 200 while the process is alive. `/readyz` is for load
   * balancers: it answers 503 while the server is not ready.
   */
  get routes(): readonly HttpRoute[] {
    const route = { method: 'GET', access: 'public', body: 'none', startsWork: false } as const;
    const alive = async () => ({ status: 200, body: await this.report() });
    const ready = async () => {
      const body = await this.report();
      return { status: body.ready ? 200 : 503, body };
    };
    return [
      { ...route, path: '/health', handle: alive },
      { ...route, path: '/healthz', handle: alive },
      { ...route, path: '/readyz', handle: ready },
    ];
  }

  async report(): Promise<Report> {
    return { status: 'ok', service: 'plugboard', ready: await this.#ready() };
  }

  /** A runtime that fails to answer is not ready, nor a server that needs an entry that fails. */
  async #ready(): Promise<boolean> {
    if (this.#host.entries().some(({ optional, health }) => !optional && health?.state === 'failed')) return false;
    try {
      return await this.#runtimes.one().ready();
    } catch (error) {
      this.#log.error({ err: error }, 'the readiness check failed');
      return false;
    }
  }
}
