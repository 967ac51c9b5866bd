import type { Clock, Lifecycle, PluginContext, Principal } from '@plugboard/kernel';
import type { Reconfiguration, Timer } from '@plugboard/kernel/contracts';
import type { HttpError, UpgradeRequest } from '@plugboard/transport-http';
import type { WebSocketConfig } from '../config.js';
import { type ConnectionLimits, connectionLimits } from '../connection/connection-limits.js';
import type { LiveConnection } from '../connection/live-connection.js';
import { limited } from '../messages/refusals.js';

/** Milliseconds between two calls of `tick` of each connection. */
const TICK = 1_000;
/**
 * Milliseconds between two checks of credentials: a revoked token must stop working within 10 s.
 */
const RECHECK = 5_000;

/**
 * The open connections: their limit, and one timer for all of them.
 *
 * 1. `reconfigure` changes the limits of later connections. Open ones keep theirs.
 * 2. `stop` closes each connection when its responses have ended, or when the time limit of `stop`
 *    is over. When the whole server stops, the HTTP transport has closed them before.
 */
export class LiveConnections implements Lifecycle {
  #config: WebSocketConfig;
  readonly #clock: Clock;
  readonly #open = new Set<LiveConnection>();
  /** Connections by token, and by address on an open server. */
  readonly #owners = new Map<string, number>();
  /** Resolves when the last connection has closed. */
  readonly #empty = Promise.withResolvers<void>();
  #timer: Timer | undefined;
  #stopping = false;
  #lastRecheck = 0;

  constructor({ config, clock }: Pick<PluginContext<WebSocketConfig>, 'config' | 'clock'>) {
    this.#config = config;
    this.#clock = clock;
  }

  /** The limits of new connections. */
  get limits(): ConnectionLimits {
    return connectionLimits(this.#config);
  }

  start(): void {
    this.#lastRecheck = this.#clock.monotonic();
    this.#timer = this.#clock.after(TICK, () => {
      this.#tick();
      this.#timer?.refresh();
    });
  }

  reconfigure({ config }: Reconfiguration<WebSocketConfig>): () => void {
    return () => {
      this.#config = config;
    };
  }

  async stop(signal: AbortSignal): Promise<void> {
    const terminateAll = () => {
      for (const connection of this.#open) connection.terminate();
    };
    signal.addEventListener('abort', terminateAll, { once: true });
    this.#stopping = true;
    for (const connection of this.#open) connection.leave();
    if (this.#open.size > 0) await this.#empty.promise;
    signal.removeEventListener('abort', terminateAll);
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** @throws HttpError 429 if a limit on connections is reached. */
  assertCapacity(request: UpgradeRequest): void {
    const { maxConnections, maxConnectionsPerToken, maxConnectionsPerAddress } = this.#config;
    if (this.#open.size >= maxConnections) {
      throw tooMany(`This server has ${maxConnections} open WebSockets, the maximum (\`maxConnections\`).`);
    }
    const count = this.#owners.get(ownerOf(request)) ?? 0;
    if (request.open && count >= maxConnectionsPerAddress) {
      throw tooMany(`This address has ${count} open WebSockets, the maximum (\`maxConnectionsPerAddress\`).`);
    }
    if (!request.open && count >= maxConnectionsPerToken) {
      throw tooMany(`This API token has ${count} open WebSockets, the maximum (\`maxConnectionsPerToken\`).`);
    }
  }

  add(connection: LiveConnection, request: UpgradeRequest): void {
    const owner = ownerOf(request);
    this.#open.add(connection);
    this.#owners.set(owner, (this.#owners.get(owner) ?? 0) + 1);
    connection.onClose(() => {
      this.#open.delete(connection);
      if (this.#stopping && this.#open.size === 0) this.#empty.resolve();
      const left = (this.#owners.get(owner) ?? 1) - 1;
      if (left > 0) this.#owners.set(owner, left);
      else this.#owners.delete(owner);
    });
  }

  #tick(): void {
    const now = this.#clock.monotonic();
    const rechecks = now - this.#lastRecheck >= RECHECK;
    if (rechecks) this.#lastRecheck = now;
    for (const connection of this.#open) {
      connection.tick(now);
      if (rechecks) void connection.recheck();
    }
  }
}

function ownerOf({ open, address, principal }: UpgradeRequest): string {
  return open ? `address ${address}` : `token ${tokenOf(principal)}`;
}

function tokenOf({ tokenId, project, token, subject }: Principal): string {
  return tokenId ?? JSON.stringify([project, token, subject]);
}

function tooMany(message: string): HttpError {
  return limited('connection_limit_exceeded', message);
}
