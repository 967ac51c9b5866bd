import { randomUUID } from 'node:crypto';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import type pg from 'pg';
import { discard, newClient } from './connection-pool.js';

interface ListenerOptions {
  /** Past a pooler that shares connections between transactions. */
  readonly url: string;
  readonly channel: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Sends a hint, by another connection. */
  readonly notify: (payload: string) => Promise<unknown>;
  /** Receives the hints of all servers, this one's included. */
  readonly onHint: (payload: string) => void;
}

/** Milliseconds between two checks: a connection may die without a word. */
const INTERVAL = 10_000;
/** Milliseconds until connecting, a statement or a check has failed. */
const TIMEOUT = 5_000;
const CHECK = 'check ';

/**
 * Listens for hints on a connection of its own, as long as they arrive. At the start and every 10 s
 * it sends one to itself. Without an answer it connects anew at the next check; until then, others
 * find by polling what the hints would have told.
 */
export class Listener {
  readonly #options: ListenerOptions;
  #client: pg.Client | undefined;
  #timer: Timer | undefined;
  /** The check that waits for its own notification. */
  #awaited: { readonly payload: string; readonly resolve: (arrived: boolean) => void } | undefined;
  #isStopped = false;
  #hasWarned = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#check();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#awaited?.resolve(false);
    this.#drop();
  }

  async #check(): Promise<void> {
    const { clock, log } = this.#options;
    try {
      this.#client ??= await this.#listen();
      const answers = !this.#isStopped && (await this.#answers());
      if (this.#isStopped) return;
      if (!answers) throw new Error('no notification arrived');
      if (this.#hasWarned) log.info('notifications arrive again');
      this.#hasWarned = false;
    } catch (err) {
      if (this.#isStopped) return;
      this.#drop();
      if (!this.#hasWarned) log.warn({ err }, NOT_LISTENING);
      this.#hasWarned = true;
    }
    this.#timer = clock.after(INTERVAL, () => void this.#check());
  }

  async #listen(): Promise<pg.Client> {
    const { url, channel, onHint } = this.#options;
    const client = newClient({ url, timeout: TIMEOUT });
    client.on('error', () => {}); // the next check finds out
    client.on('end', () => this.#awaited?.resolve(false));
    client.on('notification', ({ payload = '' }) => {
      if (!payload.startsWith(CHECK)) onHint(payload);
      else if (payload === this.#awaited?.payload) this.#awaited.resolve(true);
    });
    try {
      await client.connect();
      await client.query(`LISTEN "${channel}"`);
    } catch (error) {
      discard(client);
      throw error;
    }
    if (this.#isStopped) discard(client);
    return client;
  }

  /** Whether a notification to itself arrives. */
  async #answers(): Promise<boolean> {
    const { clock, notify } = this.#options;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const payload = CHECK + randomUUID();
    this.#awaited = { payload, resolve };
    const timer = clock.after(TIMEOUT, () => resolve(false));
    notify(payload).catch(() => resolve(false)); // the next check tries again
    try {
      return await promise;
    } finally {
      timer.cancel();
      this.#awaited = undefined;
    }
  }

  #drop(): void {
    if (this.#client) discard(this.#client);
    this.#client = undefined;
  }
}

const NOT_LISTENING =
  'notifications of other servers do not arrive, and are replaced by polling: what happens on another server takes seconds ' +
  'longer. Behind a pooler in transaction mode, set `listenUrl` to the address of PostgreSQL itself';
