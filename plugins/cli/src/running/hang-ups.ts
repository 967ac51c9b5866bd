import { isatty } from 'node:tty';

/**
 * How often, at intervals in milliseconds, a server in a terminal checks after a SIGHUP whether the
 * terminal is gone. A shell that exits sends the signal first, and on a busy machine the terminal
 * closes seconds later.
 */
const CHECKS = { interval: 500, count: 60 };

/** What a SIGHUP can mean. */
interface HangUpHandlers {
  reload(): void;
  /** The terminal was closed. */
  stop(): void;
}

/**
 * Handles SIGHUP, which has two meanings:
 *
 * 1. The terminal was closed, for a server that was started in one: one of its standard streams was
 *    a terminal, and none is any more. The server stops.
 * 2. Anything else reloads: `plugboard reload`, `kill -HUP`, a service manager. So does the SIGHUP
 *    of a closed terminal for a server without one (nohup, setsid, a service), where it does no
 *    harm.
 *
 * It listens from the beginning, because the signal would end the process otherwise. One that
 * arrives before there is a server is handled as soon as there is one.
 */
export class HangUps {
  readonly #isTerminal: (descriptor: number) => boolean;
  readonly #terminals: readonly number[];
  #handlers: HangUpHandlers | undefined;
  #wasSignalled = false;
  #nextCheck: NodeJS.Timeout | undefined;

  constructor(isTerminal: (descriptor: number) => boolean = isatty) {
    this.#isTerminal = isTerminal;
    this.#terminals = [0, 1, 2].filter((descriptor) => isTerminal(descriptor));
    process.on('SIGHUP', () => this.#onSignal());
  }

  handleWith(handlers: HangUpHandlers): void {
    this.#handlers = handlers;
    if (this.#wasSignalled) this.#onSignal();
  }

  #onSignal(): void {
    this.#wasSignalled = true;
    const handlers = this.#handlers;
    if (handlers === undefined) return;
    if (this.#isTerminalClosed()) {
      handlers.stop();
    } else {
      handlers.reload();
      if (this.#terminals.length > 0) this.#watchTerminal(handlers, CHECKS.count);
    }
  }

  #watchTerminal(handlers: HangUpHandlers, checks: number): void {
    clearTimeout(this.#nextCheck);
    this.#nextCheck = setTimeout(() => {
      if (this.#isTerminalClosed()) handlers.stop();
      else if (checks > 1) this.#watchTerminal(handlers, checks - 1);
    }, CHECKS.interval).unref();
  }

  #isTerminalClosed(): boolean {
    return this.#terminals.length > 0 && !this.#terminals.some((descriptor) => this.#isTerminal(descriptor));
  }
}
