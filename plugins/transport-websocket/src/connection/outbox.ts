import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** Sends to one client, and measures how far the client is behind. */
export class Outbox {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #maxBuffered: number;
  /** Bytes that the network had taken when `progress` was last called. */
  #taken = 0;
  #paused = false;
  #waiting: (() => void)[] = [];

  constructor(ws: WebSocket, socket: Socket, maxBuffered: number) {
    this.#ws = ws;
    this.#socket = socket;
    this.#maxBuffered = maxBuffered;
    socket.on('drain', () => this.#drained());
    socket.once('close', () => this.#drained());
  }

  /** Whether so much is waiting that text should be sent in fewer events. */
  get pressed(): boolean {
    return this.#ws.bufferedAmount > this.#maxBuffered / 4;
  }

  /** Sends messages, which leave in one write. */
  send(messages: readonly string[]): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#socket.cork();
    for (const message of messages) this.#ws.send(message);
    process.nextTick(() => this.#socket.uncork());
    // A client that does not read the answers may not send more requests.
    if (this.#isFull() && !this.#paused) {
      this.#paused = true;
      this.#ws.pause();
    }
  }

  /**
   * Returns undefined while there is room. Otherwise resolves when all that waits has been handed
   * to the network, or the connection has closed.
   */
  room(): Promise<void> | undefined {
    if (!this.#isFull() || this.#ws.readyState !== this.#ws.OPEN) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** What the client has read since the last call: `stalled` if something waits and the network took nothing of it. */
  progress(): 'idle' | 'reading' | 'stalled' {
    if (this.#ws.bufferedAmount === 0) return 'idle';
    const taken = this.#socket.bytesWritten - this.#socket.writableLength;
    const stalled = taken === this.#taken;
    this.#taken = taken;
    return stalled ? 'stalled' : 'reading';
  }

  /** Below its high-water mark a socket emits no `drain`, so a smaller `maxBuffered` takes effect there. */
  #isFull(): boolean {
    return this.#ws.bufferedAmount > this.#maxBuffered && this.#socket.writableNeedDrain;
  }

  #drained(): void {
    if (this.#paused) this.#ws.resume();
    this.#paused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
