import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { PluginContext } from '@plugboard/kernel';
import { type Budget, heapLimit } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import { tooManyConnections } from '../errors/refusals.js';
import { Exchanges } from '../exchange/exchanges.js';
import { networkOf } from '../limits/caller.js';
import { EarlyReplies } from './early-replies.js';

/** Limits the open connections, in total and per address, and handles their errors. */
export class Connections {
  readonly #exchanges: Exchanges;
  readonly #early: EarlyReplies;
  readonly #budget: Budget;
  #perAddress: number;
  readonly #open = new Map<string, number>();
  readonly #refused = new WeakSet<Socket>();

  constructor(
    @inject(CONTEXT) { config, entry, budgets }: PluginContext<HttpConfig>,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(EarlyReplies) early: EarlyReplies,
  ) {
    this.#exchanges = exchanges;
    this.#early = early;
    this.#perAddress = perAddressOf(config);
    this.#budget = budgets.create({
      name: 'connections',
      unit: 'connections',
      limit: maxConnectionsOf(config),
      setting: `${entry}.maxConnections`,
    });
  }

  /** Changes the limits. Open connections stay. */
  resize(config: HttpConfig): void {
    this.#perAddress = perAddressOf(config);
    this.#budget.resize(maxConnectionsOf(config));
  }

  /** Whether a connection was refused. Requests on it are ignored. */
  isRefused(socket: Socket): boolean {
    return this.#refused.has(socket);
  }

  /**
   * Handles a new connection. A socket needs an error listener in every state: Node removes its own
   * after CONNECT and upgrades, and an error without a listener ends the process (S-33).
   */
  add(socket: Socket): void {
    socket.on('error', (error) => this.#exchanges.onConnectionError(error));
    const address = networkOf(socket.remoteAddress);
    const open = this.#open.get(address) ?? 0;
    if (open >= this.#perAddress || !this.#budget.reserve([address], 1)) {
      this.#refused.add(socket);
      this.#early.toSocket(socket, tooManyConnections(this.#budget.setting));
      return;
    }
    this.#open.set(address, open + 1);
    socket.once('close', () => {
      this.#budget.release([address], 1);
      const left = (this.#open.get(address) ?? 1) - 1;
      if (left > 0) this.#open.set(address, left);
      else this.#open.delete(address);
    });
  }
}

function perAddressOf({ maxConnectionsPerAddress }: HttpConfig): number {
  return maxConnectionsPerAddress ?? Number.POSITIVE_INFINITY;
}

/** Bytes of heap that one connection may cost: parser, buffers, request objects. */
const HEAP_PER_CONNECTION = 64 * 1024;

/**
 * The limit `maxConnections`. Unless it is set, callers get half of the process's file descriptors;
 * a turn needs one more for its model server, and stores and tools need some.
 */
function maxConnectionsOf({ maxConnections }: HttpConfig): number {
  return maxConnections ?? Math.min(Math.floor(descriptorLimit() / 2), Math.floor(heapLimit() / HEAP_PER_CONNECTION));
}

/** Returned if the system reports no limit. */
const UNLIMITED = 1_048_576;

/** The number of files and sockets that this process may have open. */
function descriptorLimit(): number {
  const text = fromProc() ?? fromReport();
  const limit = Number(text);
  return Number.isInteger(limit) && limit > 0 ? limit : UNLIMITED;
}

function fromProc(): string | undefined {
  try {
    return /^Max open files +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1];
  } catch {
    return undefined; // not Linux
  }
}

/** Slower, but works on every Unix. */
function fromReport(): string | undefined {
  Object.assign(process.report, { excludeNetwork: true }); // would look up host names; the types do not know it
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: number | string } } };
  return userLimits?.open_files?.soft?.toString();
}
