import type { Clock } from '@plugboard/kernel';

/**
 * The chats to which Telegram wants nothing sent for a while. The kit keeps the pace of replies and
 * of answers that grow; this is for the rest.
 */
export class Pauses {
  readonly #clock: Clock;
  /** Until when, on the clock's monotonic scale. */
  readonly #until = new Map<number, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(chat: number, seconds: number): void {
    const now = this.#clock.monotonic();
    for (const [other, until] of this.#until) if (until <= now) this.#until.delete(other);
    this.#until.set(chat, now + seconds * 1_000);
  }

  isPaused(chat: number): boolean {
    return (this.#until.get(chat) ?? 0) > this.#clock.monotonic();
  }
}
