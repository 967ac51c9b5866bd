import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** Sends to one client, and knows how far the client is behind. */
export class Outbox {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #maxBuffered: number;
  #sent = 0;
  /** What the client had read when the progress was last looked at. */
  #read = 0;
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
    for (const message of messages) {
      this.#ws.send(message);
      this.#sent += message.length;
    }
    process.nextTick(() => this.#socket.uncork());
    // A client that does not read what it asks for may not ask for more.
    if (this.#ws.bufferedAmount > this.#maxBuffered && !this.#paused) {
      this.#paused = true;
      this.#ws.pause();
    }
  }

  /** Resolves at once while little waits to be read; else when all of it has been handed to the network. */
  room(): Promise<void> | undefined {
    if (this.#ws.bufferedAmount <= this.#maxBuffered || this.#ws.readyState !== this.#ws.OPEN) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Whether something waits and nothing of it was read since the last call. */
  isStalled(): boolean {
    const read = this.#sent - this.#ws.bufferedAmount;
    const stalled = this.#ws.bufferedAmount > 0 && read === this.#read;
    this.#read = read;
    return stalled;
  }

  #drained(): void {
    if (this.#paused) this.#ws.resume();
    this.#paused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}
