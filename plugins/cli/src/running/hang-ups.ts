import { isatty } from 'node:tty';

/** Milliseconds after a SIGHUP in which a shell that sent it to its jobs has ended. */
const SHELL_EXIT = 1_000;

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
 *    of a closed terminal for a server without one (nohup, setsid, a service), where it does no harm.
 *
 * It listens from the beginning, because the signal would end the process otherwise. One that
 * arrives before there is a server is handled as soon as there is one.
 */
export class HangUps {
  readonly #terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  #handlers: HangUpHandlers | undefined;
  #wasSignalled = false;

  constructor() {
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
      // Some shells send it to their jobs when they exit, shortly before the terminal is gone.
      setTimeout(() => this.#isTerminalClosed() && handlers.stop(), SHELL_EXIT);
    }
  }

  #isTerminalClosed(): boolean {
    return this.#terminals.length > 0 && !this.#terminals.some((descriptor) => isatty(descriptor));
  }
}
