import { type Clock, type Lifecycle, type PluginContext, type Principal, parseDuration, parseSize } from '@plugboard/kernel';
import type { Reconfiguration, Timer } from '@plugboard/kernel/contracts';
import type { HttpError, UpgradeRequest } from '@plugboard/transport-http';
import type { WebSocketConfig } from '../config.js';
import type { Connection } from '../connection/connection.js';
import type { ConnectionLimits } from '../connection/connection-limits.js';
import { limited } from '../messages/refusals.js';

/** How often connections are looked at (ms). */
const TICK = 1_000;
/** Interval of credential checks (ms): a revoked token must stop working within 10 s. */
const RECHECK = 5_000;

/**
 * The open connections: how many there may be, and one timer for all of them.
 *
 * 1. `reconfigure` changes the limits of later connections. Open ones stay as they are.
 * 2. `stop` closes the connections when their responses have ended, and what is left when its time
 *    is over. When the whole server stops, the HTTP transport has closed them before.
 */
export class Connections implements Lifecycle {
  #config: WebSocketConfig;
  readonly #clock: Clock;
  readonly #open = new Set<Connection>();
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
    const { maxFrameSize, maxBuffered, pingInterval, stallTimeout, maxAge } = this.#config;
    return {
      maxFrameSize: parseSize(maxFrameSize),
      maxBuffered: parseSize(maxBuffered),
      pingInterval: parseDuration(pingInterval),
      stallTimeout: parseDuration(stallTimeout),
      maxAge: parseDuration(maxAge),
    };
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
    const late = () => {
      for (const connection of this.#open) connection.terminate();
    };
    signal.addEventListener('abort', late, { once: true });
    this.#stopping = true;
    for (const connection of this.#open) connection.leave();
    if (this.#open.size > 0) await this.#empty.promise;
    signal.removeEventListener('abort', late);
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  get size(): number {
    return this.#open.size;
  }

  /** @throws HttpError 429 if a limit on connections is reached. */
  assertPlace(request: UpgradeRequest): void {
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

  add(connection: Connection, request: UpgradeRequest): void {
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
