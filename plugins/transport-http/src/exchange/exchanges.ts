import type { IncomingMessage, ServerResponse } from 'node:http';
import { CLOCK, type Clock, IDS, type IdSource, inject, injectable, LOGGER, type Logger } from '@plugboard/kernel';
import { ErrorBodies } from '../errors/error-format.js';
import { AccessLog } from './access-log.js';
import { Exchange, type Surroundings } from './exchange.js';
import type { Ending } from './response-writer.js';

/** The exchanges that are not over yet. */
@injectable()
export class Exchanges implements Surroundings {
  readonly clock: Clock;
  readonly log: Logger;
  readonly errors: ErrorBodies;
  readonly #ids: IdSource;
  readonly #accessLog: AccessLog;
  readonly #open = new Set<Exchange>();
  #draining = false;
  #hangUps = 0;
  #onOver: () => void = () => {};
  #onIdle: () => void = () => {};

  constructor(
    @inject(CLOCK) clock: Clock,
    @inject(IDS) ids: IdSource,
    @inject(LOGGER) log: Logger,
    @inject(AccessLog) accessLog: AccessLog,
    @inject(ErrorBodies) errors: ErrorBodies,
  ) {
    this.errors = errors;
    this.clock = clock;
    this.#ids = ids;
    this.log = log;
    this.#accessLog = accessLog;
  }

  /** Whether the server is about to stop: it takes no new work. */
  get draining(): boolean {
    return this.#draining;
  }

  /** Connections that a caller broke off. */
  get hangUps(): number {
    return this.#hangUps;
  }

  /** Requests that the log was spared. */
  get unlogged(): number {
    return this.#accessLog.leftOut;
  }

  get size(): number {
    return this.#open.size;
  }

  requestId(): string {
    return `req_${this.#ids.hex(32)}`;
  }

  begin(req: IncomingMessage, res: ServerResponse): Exchange {
    const exchange = new Exchange(req, res, this.requestId(), this);
    this.#open.add(exchange);
    return exchange;
  }

  /** The exchange that a connection is busy with. */
  on(socket: unknown): Exchange | undefined {
    for (const exchange of this.#open) if (exchange.isOn(socket)) return exchange;
    return undefined;
  }

  over(exchange: Exchange): void {
    this.#open.delete(exchange);
    this.#accessLog.write(exchange);
    this.#onOver();
    if (this.#open.size === 0) this.#onIdle();
  }

  /** A connection failed. That callers hang up is nothing to look into: it is counted. */
  lost(error: unknown): void {
    if (isHangUp(error)) this.#hangUps++;
    else this.log.error({ err: error }, 'a connection failed');
  }

  /** From now on there is no new work. @param onOver called whenever an exchange is over. */
  drain(onOver: () => void): void {
    this.#draining = true;
    this.#onOver = onOver;
  }

  /** Ends when no exchange is left, the limit in milliseconds is over, or the signal is aborted. */
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

  abandon(reason: Error): void {
    for (const exchange of this.#open) exchange.abandon(reason);
  }

  cut(ending: Ending): void {
    for (const exchange of this.#open) exchange.cut(ending);
  }
}

export function isHangUp(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ECONNRESET' || error.code === 'EPIPE' || error.code === 'ECONNABORTED')
  );
}
