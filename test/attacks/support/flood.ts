import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Test } from 'tap';
import type { Sent } from './heavy-requests.js';
import type { ServerProcess } from './server-process.js';

/** Callers that repeat requests as fast as they are answered, on a thread of their own. */
export class Flood {
  readonly #worker: Worker;
  /** The address of its model server. */
  readonly modelUrl: string;

  private constructor(worker: Worker, port: number) {
    this.#worker = worker;
    this.modelUrl = `http://127.0.0.1:${port}/v1`;
  }

  static async create(t: Test): Promise<Flood> {
    const worker = new Worker(join(import.meta.dirname, 'flood.mjs'), { execArgv: [] });
    t.teardown(() => worker.terminate());
    const [port] = await once(worker, 'message');
    return new Flood(worker, port);
  }

  /** @param connections what each connection repeats. */
  start({ port }: Pick<ServerProcess, 'port'>, connections: readonly Sent[]): void {
    this.#worker.postMessage({ port, connections });
  }

  /** @returns how often each status was received. */
  async stop(): Promise<Readonly<Record<string, number>>> {
    this.#worker.postMessage({ port: 0, connections: [] });
    const [statuses] = await once(this.#worker, 'message');
    return statuses;
  }
}
