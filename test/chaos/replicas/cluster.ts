import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';
import { openStore, SYSTEM_CLOCK } from '../../../plugins/store-postgres/test/open-store.js';
import { freePort, realPostgres } from '../../../plugins/store-postgres/test/real-postgres.js';
import { TcpProxy } from '../../../plugins/store-postgres/test/tcp-proxy.js';
import type { StoredHistory } from '../checker.js';
import { Victim } from '../victim.js';
import { COUNT_TOOL } from './counter.js';

/** Seconds: the shortest lease. */
export const LEASE = 5;

const YAML = `
transports:
  http: { host: "\${HOST}", port: "\${PORT}" }
  chat-completions: {}
  responses: {}
  health: {}
  sse: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, contextWindow: 10000000 }
tools:
  clock: {}
  count: { use: ./count.mjs }
agents:
  assistant: { model: fast, tools: [clock, count] }
  keeper: { model: fast, tools: [clock, count], onRestart: keep-input }
sessions: { use: postgres, url: "\${DATABASE_URL}", schema: "\${SCHEMA}", lease: "\${LEASE}", poolSize: 4 }
log: { level: warn }
`;

export interface ClusterOptions {
  readonly servers: number;
  /** The database as the proxies reach it: PostgreSQL, or a pooler before it. */
  readonly databasePort?: number;
  /** Seconds. */
  readonly lease?: number;
  readonly env: Readonly<Record<string, string>>;
  /** Of one server alone. */
  readonly envOf?: (index: number) => Readonly<Record<string, string>>;
}

/** One of several servers over a database, as a process that can be killed, paused and cut off. */
export class ClusterServer {
  readonly url: string;
  /** Whether a load balancer would send it requests: it does not know of pauses. */
  isUp = false;
  /** What happens to it now. */
  isDisturbed = false;
  readonly victim: Victim;
  /** Between it and the database. */
  readonly proxy: TcpProxy;

  constructor(url: string, victim: Victim, proxy: TcpProxy) {
    this.url = url;
    this.victim = victim;
    this.proxy = proxy;
  }

  async start(): Promise<void> {
    await this.victim.start();
    this.isUp = true;
  }

  /** Waits until it says that it is ready. */
  async ready(): Promise<void> {
    await eventually(async () => (await fetch(`${this.url}/readyz`)).ok);
  }

  async kill(): Promise<void> {
    this.isUp = false;
    await this.victim.kill();
  }

  /** @returns the exit code. */
  async stop(): Promise<number | null> {
    this.isUp = false;
    return this.victim.stop();
  }
}

/**
 * Several servers with the same file and port, each with an address, over one schema of a real
 * PostgreSQL.
 */
export class Cluster {
  readonly servers: readonly ClusterServer[];
  readonly schema: string;

  private constructor(servers: readonly ClusterServer[], schema: string) {
    this.servers = servers;
    this.schema = schema;
  }

  /** Starts all servers at once. */
  static async start(t: Test, { servers: count, databasePort, lease = LEASE, env, envOf }: ClusterOptions): Promise<Cluster> {
    const postgres = await realPostgres();
    const folder = t.testdir({});
    const schema = `cluster_${process.pid}_${++clusters}`;
    const port = await freePort();
    const servers = await Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const own = join(folder, `server-${index}`);
        mkdirSync(own);
        writeFileSync(join(own, 'plugboard.yaml'), YAML);
        writeFileSync(join(own, 'count.mjs'), COUNT_TOOL);
        const proxy = await TcpProxy.start(t, databasePort ?? postgres.port);
        const host = `127.0.0.${index + 1}`;
        const database = { DATABASE_URL: proxy.through(postgres.url()), SCHEMA: schema, LEASE: `${lease}s` };
        const variables = { HOST: host, PORT: String(port), ...database };
        return new ClusterServer(
          `http://${host}:${port}`,
          new Victim(t, own, { ...env, ...variables, ...envOf?.(index) }),
          proxy,
        );
      }),
    );
    await Promise.all(servers.map((server) => server.start()));
    return new Cluster(servers, schema);
  }

  /** One of the servers that a load balancer would choose from. */
  pick(random: () => number): ClusterServer | undefined {
    const up = this.servers.filter(({ isUp }) => isUp);
    return up[Math.floor(random() * up.length)];
  }

  /** What is stored of sessions, and how many turns still have a lease. No server may run. */
  async read(sessions: Iterable<readonly [session: string, agent: string]>) {
    const { store, query, close } = await openStore({ schema: this.schema, clock: SYSTEM_CLOCK });
    try {
      const kept = new Map<string, StoredHistory>();
      for (const [key, agent] of sessions) kept.set(key, await store.load({ project: 'default', agent, key }));
      const [leases] = await query<{ readonly count: number }>('SELECT count(*)::int AS count FROM plugboard.turn WHERE runs');
      return { kept, leases: leases?.count };
    } finally {
      await close();
    }
  }
}

let clusters = 0;
