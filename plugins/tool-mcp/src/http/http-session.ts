import { Client } from '@modelcontextprotocol/client';
import type { Clock, IdSource } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { CLIENT, NO_LIMIT } from '../protocol/client-info.js';
import type { Fetch } from './fetch.js';
import { HttpTransport } from './http-transport.js';
import type { KnownRevision } from './known-revision.js';

/** Rounds of questions of the server in one call (SEP-2322). */
const MAX_ROUNDS = 8;
/** Milliseconds that the server has to confirm a subscription. */
const LISTEN_LIMIT = 5_000;
/** Milliseconds that the server has to end a session. */
const TERMINATE_LIMIT = 1_000;
/** Milliseconds between two subscriptions. Each that fails doubles it. */
const LISTEN_DELAY = { min: 1_000, max: 30_000 };
/** What the SDK reports when it gives up the stream of a session. */
const STREAM_LOST = /^Maximum reconnection attempts/;

export interface HttpSessionOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
  readonly revision: KnownRevision;
  readonly clock: Clock;
  readonly ids: IdSource;
  /** Aborted when the entry stops: ends each session, retired ones too. */
  readonly stopping: AbortSignal;
}

interface HttpSessionEvents {
  toolsChanged(): void;
  violation(error: Error): void;
  /** The stream that reports changes is lost for good. */
  streamLost(): void;
}

/**
 * One session with a server over HTTP. In the revision of 2026-07-28 servers know no sessions:
 * there it is one subscription to changes of the list.
 *
 * 1. `open` finds the revision, if it is not known, and begins the session.
 * 2. `run` counts what uses it. A session that was replaced, `retire`, ends with the last of them,
 *    because an answer may still be on its way.
 */
export class HttpSession {
  readonly client: Client;
  readonly #options: HttpSessionOptions;
  readonly #events: HttpSessionEvents;
  readonly #transport: HttpTransport;
  readonly #closing = new AbortController();
  readonly #stop = () => void this.close();
  #closed: Promise<void> | undefined;
  #listening: Timer | undefined;
  #running = 0;
  #isRetired = false;

  constructor(options: HttpSessionOptions, events: HttpSessionEvents) {
    this.#options = options;
    this.#events = events;
    this.#transport = new HttpTransport(options);
    this.client = new Client(CLIENT, {
      versionNegotiation: { mode: 'auto' },
      capabilities: { elicitation: { form: {} } },
      inputRequired: { maxRounds: MAX_ROUNDS },
    });
    // A turn has no person to ask.
    this.client.setRequestHandler('elicitation/create', () => ({ action: 'decline' as const }));
    this.client.setNotificationHandler('notifications/tools/list_changed', () => events.toolsChanged());
    this.client.onerror = (error) => {
      if (this.#closing.signal.aborted || this.#isRetired) return;
      if (STREAM_LOST.test(error.message) && this.isOld) events.streamLost();
      else events.violation(error);
    };
  }

  /** Whether the server speaks a revision before 2026-07-28. */
  get isOld(): boolean {
    return this.client.getProtocolEra() !== 'modern';
  }

  /** Whether the server gave the session an id, which it may forget. */
  get hasId(): boolean {
    return this.#transport.sessionId !== undefined;
  }

  async open(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { revision, stopping } = this.#options;
    stopping.addEventListener('abort', this.#stop, { once: true });
    const abort = () => void this.#transport.close(); // the SDK's probe knows no signal
    signal.addEventListener('abort', abort, { once: true });
    try {
      const { prior } = revision;
      await this.client.connect(this.#transport, { timeout: NO_LIMIT, ...(prior && { prior }) });
      signal.throwIfAborted();
      revision.remember(this.client);
    } catch (error) {
      revision.forget();
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', abort);
    }
    if (!this.isOld && this.client.getServerCapabilities()?.tools?.listChanged) await this.#listen();
  }

  /** Does something in the session, which is not closed before it has ended. */
  async run<T>(work: (client: Client) => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      return await work(this.client);
    } finally {
      this.#running -= 1;
      if (this.#isRetired && this.#running === 0) void this.close();
    }
  }

  /** Closes the session when nothing uses it any more. */
  retire(): void {
    this.#isRetired = true;
    if (this.#running === 0) void this.close();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#options.stopping.removeEventListener('abort', this.#stop);
    this.#closing.abort();
    this.#listening?.cancel();
    if (this.hasId && !this.#isRetired) {
      const late = Promise.withResolvers<void>();
      const timer = this.#options.clock.after(TERMINATE_LIMIT, late.resolve);
      await Promise.race([this.#transport.terminateSession().catch(() => {}), late.promise]);
      timer.cancel();
    }
    await this.client.close().catch(() => {});
  }

  /** Subscribes to changes of the list, and again when the subscription ends. */
  async #listen(failures = 0): Promise<void> {
    if (this.#isOver) return;
    try {
      const { closed } = await this.client.listen({ toolsListChanged: true }, { timeout: LISTEN_LIMIT });
      if (failures > 0) this.#events.toolsChanged(); // what happened in between is not reported
      void closed.then(() => this.#listenAgain(1));
    } catch (error) {
      if (this.#isOver) return;
      this.#events.violation(error instanceof Error ? error : new Error(String(error)));
      this.#listenAgain(failures + 1);
    }
  }

  #listenAgain(failures: number): void {
    if (this.#isOver) return;
    const { clock, ids } = this.#options;
    const delay = Math.min(LISTEN_DELAY.min * 2 ** (failures - 1), LISTEN_DELAY.max);
    this.#listening = clock.after(delay * (1 + ids.fraction()), () => void this.#listen(failures));
  }

  get #isOver(): boolean {
    return this.#isRetired || this.#closing.signal.aborted;
  }
}
