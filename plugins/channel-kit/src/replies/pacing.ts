import type { Clock } from '@plugboard/kernel';

/** Milliseconds that a platform may ask to wait. */
const MIN_WAIT = 1_000;
const MAX_WAIT = 24 * 60 * 60_000;

/** The chats to which nothing may be sent for a while, because the platform says so. */
export class Pacing {
  readonly #clock: Clock;
  /** Until when each has to wait, in milliseconds since the epoch. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Lets a chat wait. A shorter wait does not end a longer one. @returns how long it waits now. */
  pause(chat: string, ms: number): number {
    const until = this.#clock.now() + Math.min(Math.max(ms, MIN_WAIT), MAX_WAIT);
    if (until > (this.#until.get(chat) ?? 0)) this.#until.set(chat, until);
    return this.left(chat);
  }

  /** The milliseconds that a chat has to wait. */
  left(chat: string): number {
    const left = (this.#until.get(chat) ?? 0) - this.#clock.now();
    if (left <= 0) this.#until.delete(chat);
    return Math.max(0, left);
  }
}
