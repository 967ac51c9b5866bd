import type { Clock } from '@plugboard/kernel';

/** The chats to which nothing may be sent for a while, because the platform says so. */
export class Pacing {
  readonly #clock: Clock;
  /** Until when each has to wait, in milliseconds since the epoch. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Lets a chat wait. A shorter wait does not end a longer one. */
  pause(chat: string, ms: number): void {
    const until = this.#clock.now() + ms;
    if (until > (this.#until.get(chat) ?? 0)) this.#until.set(chat, until);
  }

  /** The milliseconds that a chat has to wait. */
  left(chat: string): number {
    const left = (this.#until.get(chat) ?? 0) - this.#clock.now();
    if (left <= 0) this.#until.delete(chat);
    return Math.max(0, left);
  }
}
