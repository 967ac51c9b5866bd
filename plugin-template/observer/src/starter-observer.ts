import { tracingChannel } from 'node:diagnostics_channel';
import { type Clock, type Logger, parseDuration } from '@plugboard/kernel';
import type { StarterConfig } from './config.ts';

/** What `plugboard.turn` publishes: at the start of a turn, and the same object at its end. */
interface PublishedTurn {
  readonly request: { readonly requestId: string; readonly target: { readonly name: string } };
  /** Only at the end: `stop` or why else the answer ended, or the code of the failure. */
  readonly status?: string;
}

const CHANNEL = tracingChannel<unknown, object>('plugboard.turn');

/**
 * Reports slow turns. It watches what the server publishes on diagnostics channels, and cannot
 * change it. All servers of a process publish on the same channels.
 */
export class StarterObserver {
  readonly #slowAfter: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** When the running turns began. An entry goes with its turn. */
  readonly #begun = new WeakMap<object, number>();
  readonly #subscribers = {
    start: (turn: object) => void this.#begun.set(turn, this.#clock.monotonic()),
    asyncEnd: (turn: object) => this.#report(turn as PublishedTurn),
    // A tracing channel requires all five. An error is in what `asyncEnd` gets, too.
    end: () => {},
    asyncStart: () => {},
    error: () => {},
  };

  constructor({ slowAfter }: StarterConfig, clock: Clock, log: Logger) {
    this.#slowAfter = parseDuration(slowAfter);
    this.#clock = clock;
    this.#log = log;
  }

  start(): void {
    CHANNEL.subscribe(this.#subscribers);
  }

  stop(): void {
    CHANNEL.unsubscribe(this.#subscribers);
  }

  /** Runs within the turn: it is short, and an error here would be one of the whole server. */
  #report(turn: PublishedTurn): void {
    const begun = this.#begun.get(turn);
    if (begun === undefined) return; // it began before this plugin
    const duration_ms = Math.round(this.#clock.monotonic() - begun);
    if (duration_ms < this.#slowAfter) return;
    const { requestId: request_id, target } = turn.request;
    this.#log.warn({ request_id, agent: target.name, duration_ms, status: turn.status }, 'slow turn');
  }
}
