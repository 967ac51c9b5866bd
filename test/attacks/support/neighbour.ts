import { setTimeout as wait } from 'node:timers/promises';
import type { ServerProcess } from './server-process.js';

/** What an innocent caller measured. */
interface Measured {
  readonly turns: number;
  /** Turns per second. */
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** Statuses other than 200, and broken connections, by their number. */
  readonly failures: Readonly<Record<string, number>>;
}

interface NeighbourOptions {
  readonly token?: string;
  readonly model?: string;
  readonly connections?: number;
  /** Milliseconds between two turns: time for the server, and for other tests. */
  readonly pause?: number;
  /** Whether its answers are streams. Each must arrive to its end. */
  readonly streams?: boolean;
}

/**
 * An innocent caller that runs small turns, one after the other, on a few connections, while the
 * server is under attack.
 */
export class Neighbour {
  readonly #server: ServerProcess;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #end: string;
  readonly #pause: number;
  readonly #times: number[] = [];
  readonly #failures: Record<string, number> = {};
  readonly #began = performance.now();
  readonly #loops: Promise<void>[];
  #stopped = false;

  constructor(server: ServerProcess, options: NeighbourOptions = {}) {
    const { token, model = 'assistant', connections = 2, streams = false, pause = 5 } = options;
    this.#server = server;
    this.#pause = pause;
    this.#headers = {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }], stream: streams });
    this.#end = streams ? 'data: [DONE]\n\n' : '}';
    this.#loops = Array.from({ length: connections }, () => this.#loop(body));
  }

  /** Turns that were served so far. */
  get turns(): number {
    return this.#times.length;
  }

  get hasFailed(): boolean {
    return Object.keys(this.#failures).length > 0;
  }

  async #loop(body: string): Promise<void> {
    while (!this.#stopped) {
      const start = performance.now();
      try {
        const { status, text } = await this.#server.request('/v1/chat/completions', {
          method: 'POST',
          headers: this.#headers,
          body,
        });
        if (status === 200 && !text.endsWith(this.#end)) this.#fail('cut off');
        else if (status === 200) this.#times.push(performance.now() - start);
        else this.#fail(String(status));
      } catch {
        this.#fail('connection');
      }
      await wait(this.#pause);
    }
  }

  #fail(why: string): void {
    this.#failures[why] = (this.#failures[why] ?? 0) + 1;
  }

  /** Stops after the turns that run, and returns the figures. */
  async stop(): Promise<Measured> {
    this.#stopped = true;
    await Promise.all(this.#loops);
    const seconds = (performance.now() - this.#began) / 1000;
    const sorted = this.#times.toSorted((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
    return {
      turns: sorted.length,
      rate: Math.round(sorted.length / seconds),
      p50: at(0.5),
      p99: at(0.99),
      failures: this.#failures,
    };
  }
}
