import { heapLimit } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { originOf } from '../diagnosis/error-origin.js';

/** Milliseconds until the process ends after an uncaught error, whatever still runs. */
const CRASH_LIMIT = 10_000;
/** The part of it in which entries stop: running HTTP requests get five seconds. */
const CRASH_STOP_LIMIT = 9_000;

/** Milliseconds in which a second SIGINT is an echo: under npm, Ctrl-C arrives twice. */
const ECHO = 250;

/** Why the process ends. */
type ExitReason =
  | { readonly kind: 'signal'; readonly signal: NodeJS.Signals; readonly at: number }
  | { readonly kind: 'crash'; readonly error: unknown };

/**
 * Stops a running server on signals and uncaught errors.
 *
 * 1. SIGTERM or SIGINT (Ctrl-C) stops the server. The exit code is 0, or 1 if something did not
 *    stop cleanly.
 * 2. A second signal ends the process at once. The end of the terminal stops the server, too, but
 *    is no second signal: a shell and the system both report it.
 * 3. An uncaught error stops the server within ten seconds. It is logged with the entry it comes
 *    from; further ones are only counted, because they are often its consequences. The exit code is
 *    1, also if the server was stopping already.
 * 4. SIGUSR2 logs what the server uses of its limits.
 */
export class Shutdown {
  readonly #server: HostServer;
  readonly #exitCode = Promise.withResolvers<number>();
  #reason: ExitReason | undefined;
  /** Uncaught errors. */
  #crashes = 0;

  constructor(server: HostServer) {
    this.#server = server;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#onSignal(signal));
    process.on('SIGUSR2', () => this.#logStatus());
    process.on('uncaughtException', (error) => this.#onCrash(error));
    process.on('unhandledRejection', (reason) => this.#onCrash(reason));
  }

  /** Why the server stops; undefined while it runs. */
  get reason(): ExitReason | undefined {
    return this.#reason;
  }

  /** The exit code, once the server has stopped. */
  get exitCode(): Promise<number> {
    return this.#exitCode.promise;
  }

  #onSignal(
    signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP',
    message = `${signal}: stopping; a second signal ends the process at once`,
  ): void {
    const first = this.#reason;
    const at = performance.now();
    if (first?.kind === 'signal' && signal === 'SIGINT' && first.signal === signal && at - first.at < ECHO) return;
    if (first !== undefined) process.exit(1);
    this.#server.log.info(message);
    void this.#stop({ kind: 'signal', signal, at }).then((clean) => this.#end(clean ? 0 : 1));
  }

  /** Stops the server because its terminal was closed. */
  onTerminalClosed(): void {
    if (this.#reason === undefined) this.#onSignal('SIGHUP', 'SIGHUP: the terminal was closed: stopping');
  }

  #logStatus(): void {
    const { rss, heapUsed, external } = process.memoryUsage();
    const memory = { rss, heap_used: heapUsed, heap_limit: heapLimit(), external };
    this.#server.log.info({ memory, limits: this.#server.budgets.reports() }, 'status');
  }

  #onCrash(error: unknown): void {
    this.#crashes++;
    if (this.#crashes > 1) return;
    const { log, inspection } = this.#server;
    log.fatal({ err: error, ...originOf(error, inspection.plugins) }, 'uncaught error: stopping');
    setTimeout(() => this.#exitNow(), CRASH_LIMIT);
    if (this.#reason === undefined) {
      void this.#stop({ kind: 'crash', error }, CRASH_STOP_LIMIT).then(() => this.#end(1));
    }
  }

  /** Something did not stop in time after an uncaught error. */
  #exitNow(): void {
    this.#server.log.fatal({ uncaught_errors: this.#crashes }, 'the server did not stop in time: ending the process');
    process.exit(1);
  }

  #end(code: number): void {
    if (this.#crashes > 1) this.#server.log.error({ uncaught_errors: this.#crashes }, 'there were further uncaught errors');
    this.#exitCode.resolve(this.#crashes > 0 ? 1 : code);
  }

  /** Returns whether everything stopped cleanly. */
  async #stop(reason: ExitReason, within?: number): Promise<boolean> {
    this.#reason = reason;
    const failures = await this.#server.stop({ within });
    for (const failure of failures) this.#server.log.error({ err: failure.cause }, failure.message);
    return failures.length === 0;
  }
}
