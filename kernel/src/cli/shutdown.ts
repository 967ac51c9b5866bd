import { audit } from '../host/log/audit.js';
import type { Server } from '../host/server.js';

/** Milliseconds that a broken server is given to end what it is at. */
const AFTER_A_CRASH = 10_000;
/** Of these, for the plugins; the rest is for what they leave behind. */
const TO_STOP_AFTER_A_CRASH = 9_000;

/** Milliseconds within which a second SIGINT is the first one's echo: started by npm, the program gets Ctrl-C from the terminal and from npm. */
const ECHO = 250;

/**
 * How a running server ends.
 *
 * 1. SIGTERM, or SIGINT (Ctrl-C), stops it: the exit code is 0, or 1 where something did not stop well.
 * 2. A second one ends the process at once.
 * 3. What nobody caught stops it too, in ten seconds at most, and the exit code is 1.
 * 4. SIGHUP ends nothing: plugins read their own files again, and the log says that what is changed in the configuration itself needs a restart.
 */
export class Shutdown {
  readonly #server: Server;
  readonly #code = Promise.withResolvers<number>();
  /** When it was told to stop, and by which signal. */
  #told: { readonly signal: string; readonly at: number } | undefined;
  #begun = false;

  constructor(server: Server) {
    this.#server = server;
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#tell(signal));
    process.on('SIGHUP', () => void this.#reload());
    process.on('uncaughtException', (error) => this.#broke(error));
    process.on('unhandledRejection', (reason) => this.#broke(reason));
  }

  /** Whether the server has been told to stop. */
  get begun(): boolean {
    return this.#begun;
  }

  /** The exit code, once the server has ended. */
  get code(): Promise<number> {
    return this.#code.promise;
  }

  #tell(signal: string): void {
    const isEcho = signal === 'SIGINT' && this.#told?.signal === signal && performance.now() - this.#told.at < ECHO;
    if (isEcho) return;
    if (this.#begun) process.exit(1);
    this.#told = { signal, at: performance.now() };
    this.#server.log.info(`${signal}: stopping; a second one ends the process at once`);
    void this.#stop().then((clean) => this.#code.resolve(clean ? 0 : 1));
  }

  async #reload(): Promise<void> {
    const { log } = this.#server;
    const { entries, failures } = await this.#server.reload();
    for (const failure of failures) log.error({ err: failure.cause }, failure.message);
    if (entries.length > 0) audit(log, 'configuration_reloaded', { entries }, 'entries have read their own files again');
    log.warn('SIGHUP: a changed configuration needs a restart');
  }

  #broke(error: unknown): void {
    this.#server.log.fatal({ err: error }, 'an error that nobody caught: stopping');
    if (!this.#begun) void this.#stop(TO_STOP_AFTER_A_CRASH).then(() => this.#code.resolve(1));
    setTimeout(() => process.exit(1), AFTER_A_CRASH).unref();
  }

  /** Whether all stopped well. */
  async #stop(within?: number): Promise<boolean> {
    this.#begun = true;
    const failures = await this.#server.stop({ within });
    for (const failure of failures) this.#server.log.error({ err: failure.cause }, failure.message);
    return failures.length === 0;
  }
}
