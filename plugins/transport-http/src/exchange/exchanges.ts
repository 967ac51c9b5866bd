import type { Clock, IdSource, Logger, PluginContext } from '@plugboard/kernel';
import type { Budget, Budgets } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { Context } from 'koa';
import { AccessLog, outcomeOf } from './access-log.js';
import { ActiveSet } from './active-set.js';
import { commonHeaders } from './common-headers.js';
import { Exchange, type ExchangeDependencies, type ReplyOutcome } from './exchange.js';

/** The exchanges in progress. */
export class Exchanges implements ExchangeDependencies {
  readonly clock: Clock;
  readonly log: Logger;
  readonly memory: Budget;
  readonly time: Budgets['time'];
  /** Whether the server is shutting down and accepts no new work. */
  draining = false;
  /** The number of connections reset by callers. */
  disconnects = 0;
  readonly #ids: IdSource;
  readonly #accessLog: AccessLog;
  readonly #open = new ActiveSet<Exchange>();
  #onExchangeEnd: () => void = () => {};
  #onIdle: () => void = () => {};

  constructor(@inject(CONTEXT) { clock, ids, log, budgets }: PluginContext, @inject(AccessLog) accessLog: AccessLog) {
    this.memory = budgets.memory;
    this.time = budgets.time;
    this.clock = clock;
    this.#ids = ids;
    this.log = log;
    this.#accessLog = accessLog;
  }

  get size(): number {
    return this.#open.size;
  }

  requestId(): string {
    return `req_${this.#ids.hex(32)}`;
  }

  /**
   * @param head of a request for an upgrade.
   * @param isWrapped whether middleware of other plugins is called.
   */
  begin(ctx: Context, head: Buffer | undefined, isWrapped: boolean): Exchange {
    const exchange = new Exchange(ctx, this.requestId(), this, head, isWrapped);
    if (isWrapped) {
      ctx.state.requestId = exchange.requestId;
      ctx.set(commonHeaders(exchange.requestId));
    }
    this.#open.add(exchange);
    return exchange;
  }

  /** The exchanges in progress now. */
  running(): Iterable<Exchange> {
    return this.#open;
  }

  /** The exchange in progress on a connection. */
  find(socket: unknown): Exchange | undefined {
    for (const exchange of this.#open) if (exchange.isOn(socket)) return exchange;
    return undefined;
  }

  onEnd(exchange: Exchange): void {
    this.#open.delete(exchange);
    this.#accessLog.write(exchange);
    exchange.operation?.end({
      status: exchange.status || undefined,
      outcome: outcomeOf(exchange),
      project: exchange.principal?.project,
    });
    this.#onExchangeEnd();
    if (this.#open.size === 0) this.#onIdle();
  }

  /** Handles the error of a connection: counts one that a caller reset, and logs any other. */
  onConnectionError(error: unknown): void {
    if (isDisconnect(error)) this.disconnects++;
    else this.log.error({ err: error }, 'a connection failed');
  }

  /** Stops accepting new work. @param onExchangeEnd called whenever an exchange ends. */
  drain(onExchangeEnd: () => void): void {
    this.draining = true;
    this.#onExchangeEnd = onExchangeEnd;
    for (const exchange of this.#open) exchange.drain();
  }

  /** Resolves without exchanges, after `limit` milliseconds, or when the signal is aborted. */
  async idle(limit: number, signal: AbortSignal): Promise<void> {
    if (this.#open.size === 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const timer = this.clock.after(limit, resolve);
      signal.addEventListener('abort', () => resolve(), { once: true });
      this.#onIdle = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Aborts the work of all exchanges. */
  cancel(reason: Error): void {
    for (const exchange of this.#open) exchange.cancel(reason);
  }

  /** Destroys the connections of all exchanges. */
  destroy(outcome: ReplyOutcome): void {
    for (const exchange of this.#open) exchange.destroy(outcome);
  }
}

/** Whether a connection error means that the caller closed or reset the connection. */
export function isDisconnect(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ECONNRESET' || error.code === 'EPIPE' || error.code === 'ECONNABORTED')
  );
}
