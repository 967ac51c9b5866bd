import type { ServerResponse } from 'node:http';
import type { Clock, Timer } from '@plugboard/kernel';
import type { HttpReply } from '../routing/routes.js';

/** How long a caller may take nothing of its reply before the connection is cut. */
export const STALL_LIMIT = 30_000;

/**
 * Carries a streamed body to the caller. It pulls: the next item is asked for when the connection has room, so that a slow reader
 * slows its source and fills no memory.
 */
export class StreamedBody {
  readonly #res: ServerResponse;
  readonly #iterator: AsyncIterator<string>;
  readonly #clock: Clock;
  readonly #onStall: () => void;
  /** Ends the wait for room. */
  #wake: (() => void) | undefined;
  /** The iterator's answer to being left before its end. */
  #left: Promise<unknown> | undefined;

  constructor(res: ServerResponse, iterator: AsyncIterator<string>, clock: Clock, onStall: () => void) {
    this.#res = res;
    this.#iterator = iterator;
    this.#clock = clock;
    this.#onStall = onStall;
  }

  /** Ends when the iterator has, or the caller is gone, which leaves the iterator. @throws what the iterator throws. */
  async send(keepAlive: HttpReply['keepAlive']): Promise<void> {
    const res = this.#res;
    const leave = () => this.#leave();
    res.once('close', leave);
    const quiet: Timer | undefined =
      keepAlive &&
      this.#clock.after(keepAlive.every, () => {
        if (!res.writableNeedDrain) res.write(keepAlive.text);
        quiet?.refresh();
      });
    try {
      res.write(''); // the head leaves at the end of this tick, together with what is there by then
      for (let next = await this.#iterator.next(); !next.done && !res.destroyed; next = await this.#iterator.next()) {
        if (!res.write(next.value)) await this.#room();
        quiet?.refresh();
      }
      await this.#left;
    } finally {
      quiet?.cancel();
      res.off('close', leave);
    }
  }

  /** Until what was written has left for the caller, or the caller is gone. */
  async #room(): Promise<void> {
    const stall = this.#clock.after(STALL_LIMIT, this.#onStall);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#res.once('drain', resolve);
    });
    stall.cancel();
  }

  #leave(): void {
    this.#left = this.#iterator.return?.();
    this.#left?.catch(() => {}); // `send` throws it, once the iterator has let go of what it was doing
    this.#wake?.();
  }
}
