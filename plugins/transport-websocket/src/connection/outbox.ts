import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** How much is sent between two pings, as a share of `maxBuffered`. */
const PING_SHARE = 1 / 8;
/**
 * When the client is behind by no more than this share of `maxBuffered`, writers continue, and text
 * is sent as it comes.
 */
const RESUME_SHARE = 1 / 4;
/** The longest frame, in UTF-16 code units. A longer message is sent in several fragments. */
const MAX_FRAGMENT = 64 * 1024;

/**
 * The queue between the responses of a connection and its client. It sends at most `maxBuffered`
 * ahead of what the client reads.
 *
 * 1. Bytes that the network has taken are not read yet: the buffers of the two systems hold several
 *    MiB. So a ping follows each part of what is sent. The client answers it when it has read that
 *    far (RFC 6455, 5.5.3), and more can be sent.
 * 2. Messages beyond that wait in the queue. `write` returns a promise then, and the writer must
 *    wait for it, so that the queue stays short.
 * 3. A message longer than 64 KiB is sent in fragments.
 *
 * Sizes are approximate bytes: UTF-16 code units.
 */
export class Outbox {
  readonly #ws: WebSocket;
  readonly #socket: Socket;
  readonly #maxBuffered: number;
  readonly #nonce: () => string;
  /** Messages that are not sent yet. Part of the first one may be. */
  readonly #queue: string[] = [];
  /** How much of the first message of the queue is sent. */
  #position = 0;
  /** Size of the queue, without what is sent. */
  #queued = 0;
  /** Size of the replies in the queue. */
  #queuedReplies = 0;
  #sent = 0;
  #read = 0;
  /** Pings without a pong, and the value of `#sent` at each. */
  readonly #pings = new Map<string, number>();
  /** The value of `#sent` at the last ping. */
  #pinged = 0;
  /** The value of `#read` at the last call of `progress`. */
  #readBefore = 0;
  #isPaused = false;
  #waitingWriters: (() => void)[] = [];

  /** @param nonce makes a text that the client cannot guess. */
  constructor(ws: WebSocket, socket: Socket, maxBuffered: number, nonce: () => string) {
    this.#ws = ws;
    this.#socket = socket;
    this.#maxBuffered = maxBuffered;
    this.#nonce = nonce;
    socket.once('close', () => this.#resumeWriters());
  }

  /**
   * Writes messages, which leave in one write of the socket if the client is not behind. If it
   * returns a promise, the writer must wait for it: until the client has read most of what was
   * sent, or the connection has closed.
   */
  write(messages: readonly string[]): Promise<void> | undefined {
    if (this.#ws.readyState !== this.#ws.OPEN) return undefined;
    for (const message of messages) {
      this.#queue.push(message);
      this.#queued += message.length;
    }
    this.#flush();
    if (this.#unread <= this.#maxBuffered) return undefined;
    return new Promise((resolve) => this.#waitingWriters.push(resolve));
  }

  /**
   * Writes the reply to a message at once. A client that sends many messages without reading the
   * replies is read slowly.
   */
  reply(message: string): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    this.#queue.push(message);
    this.#queued += message.length;
    this.#flush();
    if (this.#queued === 0) return;
    this.#queuedReplies += message.length;
    if (this.#queuedReplies <= this.#maxBuffered || this.#isPaused) return;
    this.#isPaused = true;
    this.#ws.pause();
  }

  /** The client has answered a ping. */
  acknowledge(nonce: string): void {
    const read = this.#pings.get(nonce);
    if (read === undefined) return;
    for (const earlier of this.#pings.keys()) {
      this.#pings.delete(earlier);
      if (earlier === nonce) break;
    }
    this.#read = read;
    this.#flush();
    if (this.#unread <= this.#maxBuffered * RESUME_SHARE) this.#resumeWriters();
  }

  /**
   * What the client has read since the last call: `stalled` if something waits and it has read
   * nothing.
   */
  progress(): 'idle' | 'reading' | 'stalled' {
    const hasRead = this.#read > this.#readBefore;
    this.#readBefore = this.#read;
    // A pong can only arrive if the connection is read.
    if (this.#isPaused) this.#resumeReading();
    if (this.#waitingWriters.length === 0 && this.#queue.length === 0) return 'idle';
    return hasRead ? 'reading' : 'stalled';
  }

  get #unread(): number {
    return this.#sent - this.#read + this.#queued;
  }

  #flush(): void {
    if (this.#queue.length === 0) return;
    this.#socket.cork();
    while (this.#queue.length > 0 && this.#sent - this.#read <= this.#maxBuffered) this.#sendNext();
    process.nextTick(() => this.#socket.uncork());
    if (this.#queue.length > 0) return;
    this.#queuedReplies = 0;
    if (this.#isPaused) this.#resumeReading();
  }

  /** Sends the next message, or the next fragment of it. */
  #sendNext(): void {
    const message = this.#queue[0] ?? '';
    const end = endOfFragment(message, this.#position);
    const isLast = end === message.length;
    const text = this.#position === 0 && isLast ? message : message.slice(this.#position, end);
    if (isLast) this.#queue.shift();
    this.#position = isLast ? 0 : end;
    this.#queued -= text.length;
    this.#sent += text.length;
    this.#ws.send(text, { fin: isLast });
    if (this.#sent - this.#pinged > this.#maxBuffered * PING_SHARE) this.#ping();
  }

  #ping(): void {
    const nonce = this.#nonce();
    this.#pings.set(nonce, this.#sent);
    this.#pinged = this.#sent;
    this.#ws.ping(nonce);
  }

  #resumeReading(): void {
    this.#isPaused = false;
    this.#ws.resume();
  }

  #resumeWriters(): void {
    const waiting = this.#waitingWriters;
    this.#waitingWriters = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * The index where the fragment of a message that begins at `start` ends. Both halves of a surrogate
 * pair are in one fragment.
 */
function endOfFragment(message: string, start: number): number {
  const end = start + MAX_FRAGMENT;
  if (end >= message.length) return message.length;
  const last = message.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
