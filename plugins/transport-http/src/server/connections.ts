import type { Socket } from 'node:net';
import type { Clock, PluginContext } from '@plugboard/kernel';
import type { Budget } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import { tooManyConnections } from '../errors/refusals.js';
import { ErrorBodies } from '../exchange/error-bodies.js';
import { Exchanges } from '../exchange/exchanges.js';
import { networkOf } from '../limits/caller.js';
import { maxConnectionsOf } from '../limits/config-limits.js';
import { errorResponse } from './error-response.js';

/** Milliseconds that a refused caller has to read why. */
const REFUSAL_LIMIT = 1_000;

/** Limits the open connections, in total and per address, and handles their errors. */
export class Connections {
  readonly #exchanges: Exchanges;
  readonly #errors: ErrorBodies;
  readonly #clock: Clock;
  readonly #budget: Budget;
  #perAddress: number;
  readonly #open = new Map<string, number>();
  readonly #refused = new WeakSet<Socket>();

  constructor(
    @inject(CONTEXT) { config, entry, budgets, clock }: PluginContext<HttpConfig>,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(ErrorBodies) errors: ErrorBodies,
  ) {
    this.#exchanges = exchanges;
    this.#errors = errors;
    this.#clock = clock;
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
      this.#refuse(socket);
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

  #refuse(socket: Socket): void {
    this.#refused.add(socket);
    const error = tooManyConnections(this.#budget.setting);
    const requestId = this.#exchanges.requestId();
    socket.end(errorResponse(this.#errors.format(error, requestId), requestId), () => socket.destroy());
    const timer = this.#clock.after(REFUSAL_LIMIT, () => socket.destroy());
    socket.once('close', () => timer.cancel());
  }
}

function perAddressOf({ maxConnectionsPerAddress }: HttpConfig): number {
  return maxConnectionsPerAddress ?? Number.POSITIVE_INFINITY;
}
