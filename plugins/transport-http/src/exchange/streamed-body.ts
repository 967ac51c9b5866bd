import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import type { HttpReply } from '../routing/routes.js';

/** Milliseconds after which the connection of a caller that reads nothing is destroyed. */
export const STALL_LIMIT = 30_000;

/** The encoding of plain ASCII: Node copies it as it is, in a third of the memory. */
export const ASCII = 'latin1';

/**
 * Writes a streamed body with backpressure: pulls the next item only when the socket has room, so
 * that a slow reader slows its source down instead of filling memory.
 *
 * Writes each item to the socket as one HTTP chunk (RFC 9112, 7.1): Node's response would make four
 * writes of it.
 */
export class StreamedBody {
  readonly #res: ServerResponse;
  readonly #iterator: AsyncIterator<string>;
  readonly #clock: Clock;
  readonly #onStall: () => void;
  /** Resolves the wait for `drain`. */
  #wake: (() => void) | undefined;
  /** The result of the iterator's `return`, called when the caller disconnects. */
  #returned: Promise<unknown> | undefined;

  constructor(res: ServerResponse, iterator: AsyncIterator<string>, clock: Clock, onStall: () => void) {
    this.#res = res;
    this.#iterator = iterator;
    this.#clock = clock;
    this.#onStall = onStall;
  }

  /** Resolves at the end, or when the iterator has returned. @throws what the iterator throws. */
  async send(keepAlive: HttpReply['keepAlive']): Promise<void> {
    const res = this.#res;
    const onClose = () => this.#onClose();
    res.once('close', onClose);
    const idle: Timer | undefined =
      keepAlive &&
      this.#clock.after(keepAlive.every, () => {
        if (!res.socket?.writableNeedDrain) this.#write(keepAlive.text);
        idle?.refresh();
      });
    try {
      res.write(''); // sends the head at the end of this tick, with the first item if it is there
      for (let next = await this.#iterator.next(); !next.done && !res.destroyed; next = await this.#iterator.next()) {
        if (next.value === '') continue;
        if (!this.#write(next.value)) await this.#drained();
        idle?.refresh();
      }
      await this.#returned;
    } finally {
      idle?.cancel();
      res.off('close', onClose);
    }
  }

  /** Writes an item with all others of this tick. Returns whether the socket has room for more. */
  #write(text: string): boolean {
    const { socket, chunkedEncoding } = this.#res;
    if (socket === null) return true;
    if (!socket.writable) return false; // the caller has left, and `close` follows
    socket.cork();
    process.nextTick(uncork, socket);
    const item = chunkedEncoding ? chunkOf(text, text.length) : text;
    // The whole chunk is measured, because it is written next: V8 joins its parts once for both.
    if (Buffer.byteLength(item) === item.length) return socket.write(item, ASCII);
    return socket.write(chunkedEncoding ? chunkOf(text, Buffer.byteLength(text)) : text, 'utf8');
  }

  /** Resolves when the socket has room again, or the caller has disconnected. */
  async #drained(): Promise<void> {
    const stall = this.#clock.after(STALL_LIMIT, this.#onStall);
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      this.#res.socket?.once('drain', resolve);
    });
    stall.cancel();
  }

  #onClose(): void {
    this.#returned = this.#iterator.return?.();
    this.#returned?.catch(() => {}); // `send` awaits and throws it
    this.#wake?.();
  }
}

function chunkOf(text: string, bytes: number): string {
  return `${bytes.toString(16)}\r\n${text}\r\n`;
}

function uncork(socket: Socket): void {
  socket.uncork();
}
