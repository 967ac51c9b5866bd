import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster, ClusterServer } from './cluster.js';
import { LEASE } from './cluster.js';

/** Milliseconds: longer than a lease. */
const TOO_LONG = (LEASE + 3) * 1000;

type Fault = (server: ClusterServer, random: () => number) => Promise<void>;

/** What befalls a server. Each ends with the server in order. */
const FAULTS = {
  /** Killed, and started again. */
  async kill(server, random) {
    await server.kill();
    await wait(random() * 2_000);
    await server.start();
  },
  /** Asked to end, and started again, as in an upgrade. */
  async term(server) {
    const code = await server.stop();
    if (code !== 0) throw new Error(`a server that got SIGTERM ended with ${code}`);
    await server.start();
  },
  /** Paused for longer than its lease. */
  async pause(server) {
    server.victim.signal('SIGSTOP');
    await wait(TOO_LONG);
    server.victim.signal('SIGCONT');
  },
  /** Paused for less. */
  async hiccup(server, random) {
    server.victim.signal('SIGSTOP');
    await wait(random() * 1_500);
    server.victim.signal('SIGCONT');
  },
  /** Its connections to the database are ended. */
  async drop(server) {
    server.proxy.cut();
  },
  /** They carry nothing any more, and new ones do. */
  async silence(server) {
    server.proxy.silence();
  },
  /** No connection to the database carries anything for longer than a lease. */
  async isolate(server) {
    server.proxy.isSilent = true;
    server.proxy.silence();
    await wait(TOO_LONG);
    server.proxy.isSilent = false;
    server.proxy.cut();
  },
} satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;

const WEIGHTS: readonly FaultName[] = [
  'kill',
  'kill',
  'kill',
  'term',
  'pause',
  'hiccup',
  'drop',
  'drop',
  'drop',
  'silence',
  'silence',
  'isolate',
];

/** Disturbs servers by chance, until it is told to stop. At least one is left in peace. */
export class Disturber {
  readonly counts: Record<string, number> = {};
  readonly #cluster: Cluster;
  readonly #random: () => number;
  readonly #running = new Set<Promise<void>>();
  #isStopped = false;
  #failure: unknown;

  constructor(cluster: Cluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  /** Runs until `stop`. @throws what a fault ran into. */
  async run(): Promise<void> {
    const first: FaultName[] = ['kill', 'pause', 'isolate', 'term', 'drop', 'silence'];
    while (!this.#isStopped) {
      await wait(500 + this.#random() * 2_500);
      const free = this.#cluster.servers.filter(({ isDisturbed }) => !isDisturbed);
      const [server] = free.slice(Math.floor(this.#random() * free.length));
      if (!server || (free.length === 1 && this.#cluster.servers.length > 1)) continue;
      this.#disturb(server, first.shift() ?? WEIGHTS[Math.floor(this.#random() * WEIGHTS.length)] ?? 'kill');
    }
    await Promise.all(this.#running);
    if (this.#failure) throw this.#failure;
  }

  stop(): void {
    this.#isStopped = true;
  }

  #disturb(server: ClusterServer, name: FaultName): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    server.isDisturbed = true;
    const fault = FAULTS[name](server, this.#random)
      .catch((error: unknown) => {
        this.#failure ??= error;
        this.#isStopped = true;
      })
      .finally(() => {
        server.isDisturbed = false;
        this.#running.delete(fault);
      });
    this.#running.add(fault);
  }
}
