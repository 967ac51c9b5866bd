import type { Clock, PluginState } from '@plugboard/kernel';

/** Milliseconds. After a week without updates, Telegram begins with other numbers, maybe lower. */
const EXPIRES = 6 * 24 * 60 * 60_000;

interface StoredOffset {
  readonly next: number;
  /** When the last update was stored, in milliseconds since the epoch. */
  readonly at: number;
}

/** Up to where the updates of a bot are durable here (TG-2). */
export class Offset {
  readonly #key: string;
  readonly #state: PluginState;
  readonly #clock: Clock;
  #stored: StoredOffset | undefined;

  constructor(bot: number, state: PluginState, clock: Clock) {
    this.#key = `offset/${bot}`;
    this.#state = state;
    this.#clock = clock;
  }

  async load(): Promise<void> {
    this.#stored = (await this.#state.get(this.#key)) as StoredOffset | undefined;
  }

  /** What to send: it confirms all updates before it. Undefined for all that Telegram has. */
  get next(): number | undefined {
    if (this.#stored === undefined || this.#clock.now() - this.#stored.at >= EXPIRES) return undefined;
    return this.#stored.next;
  }

  /** What to store with the last update. */
  changesFor(update: number): Readonly<Record<string, unknown>> {
    return { [this.#key]: { next: update + 1, at: this.#clock.now() } satisfies StoredOffset };
  }

  /** The last update is durable. */
  moveBehind(update: number): void {
    this.#stored = { next: update + 1, at: this.#clock.now() };
  }
}
