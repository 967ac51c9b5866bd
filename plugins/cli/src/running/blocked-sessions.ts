import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, subscribe } from 'node:diagnostics_channel';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { conversationId, type SessionId } from '@plugboard/kernel/contracts';

/**
 * Sessions that must not end the server again (S-19):
 *
 * 1. Every operation of the session store says which session it is for. What runs after it, in the
 *    same request or turn, works on this session.
 * 2. When the event loop stands still, the watchdog asks which session is worked on, and adds it to
 *    a file before it ends the process.
 * 3. The next process publishes the sessions of the file, and the runtime refuses work on them.
 * 4. Who deletes a session, or its line in the file, opens it again.
 */
export class BlockedSessions {
  /** `blocked-sessions.json` in the data folder: `DATA_DIR`, or `data` beside the configuration. */
  readonly file: string;
  readonly #current = new AsyncLocalStorage<SessionId>();

  constructor(config: string, dataFolder = process.env.DATA_DIR) {
    this.file = join(resolve(dirname(config), dataFolder ?? 'data'), 'blocked-sessions.json');
  }

  /** Closes the sessions of the file. Before anything listens. */
  close(): readonly string[] {
    const sessions = this.#read();
    const closed = channel('plugboard.blocked');
    for (const conversation of sessions) closed.publish({ conversation });
    return sessions;
  }

  /** Begins to note which session is worked on. */
  follow(): void {
    subscribe('tracing:plugboard.store:start', (message) => {
      const { session } = message as { readonly session?: SessionId };
      if (session) this.#current.enterWith(session);
    });
    subscribe('tracing:plugboard.store:asyncEnd', (message) => {
      const { operation, session, error } = message as Readonly<Record<'operation' | 'error', unknown>> & { session?: SessionId };
      if (operation === 'delete' && session && error === undefined) this.#open(conversationId(session));
    });
    Reflect.set(globalThis, CURRENT_SESSION, () => {
      const session = this.#current.getStore();
      return session && conversationId(session);
    });
  }

  #open(conversation: string): void {
    const left = this.#read();
    if (left.includes(conversation)) writeFileSync(this.file, JSON.stringify(left.filter((one) => one !== conversation)));
  }

  #read(): readonly string[] {
    try {
      const value: unknown = JSON.parse(readFileSync(this.file, 'utf8'));
      return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
    } catch {
      return []; // the watchdog has ended no process
    }
  }
}

/** Where the watchdog finds the function that says which session is worked on. */
export const CURRENT_SESSION = Symbol.for('plugboard.currentSession');
