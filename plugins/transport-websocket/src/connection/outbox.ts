import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';

/** What is sent between two pings, as a part of `maxBuffered`. */
const PING_SHARE = 1 / 8;
/**
 * When the client is behind by no more than this part of `maxBuffered`, responses go on, and text
 * is sent as it comes.
 */
const RESUME_SHARE = 1 / 4;
/** The longest frame, in UTF-16 code units. A longer message is sent in several fragments. */
const FRAGMENT = 64 * 1024;

/**
 * Sends to one client, at most `maxBuffered` ahead of what it reads.
 *
 * 1. What the network has taken is not read yet: the buffers of the two systems hold several MiB.
 *    So a ping follows each part of what is sent. The client answers it when it has read up to
 *    there (RFC 6455, 5.5.3), and that makes room for more.
 * 2. Messages that find no room wait in a queue. Responses wait for `room` before they send, so
 *    that the queue stays short.
 * 3. A message longer than 64 KiB is sent in fragments, as there is room for them.
 *
 * Sizes are in UTF-16 code units, which are bytes for most text.
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
  /** Size of the replies in the queue: they do not wait for `room`. */
  #queuedReplies = 0;
  #sent = 0;
  #read = 0;
  /** Pings without a pong, and what had been sent before each. */
  readonly #pings = new Map<string, number>();
  /** What had been sent before the last ping. */
  #pinged = 0;
  /** What was read when `progress` was last called. */
  #readBefore = 0;
  #paused = false;
  #waiting: (() => void)[] = [];

  /** @param nonce makes a text that the client cannot guess. */
  constructor(ws: WebSocket, socket: Socket, maxBuffered: number, nonce: () => string) {
    this.#ws = ws;
    this.#socket = socket;
    this.#maxBuffered = maxBuffered;
    this.#nonce = nonce;
    socket.once('close', () => this.#wake());
  }

  /** Whether the client is so far behind that text should be sent in fewer events. */
  get pressed(): boolean {
    return this.#unread > this.#maxBuffered * RESUME_SHARE;
  }

  /**
   * Sends the reply to a message. A client that sends many messages without reading the replies is
   * read slowly.
   */
  reply(message: string): void {
    this.send([message]);
    if (this.#queued === 0) return;
    this.#queuedReplies += message.length;
    if (this.#queuedReplies <= this.#maxBuffered || this.#paused) return;
    this.#paused = true;
    this.#ws.pause();
  }

  /** Sends messages, which leave in one write if there is room. */
  send(messages: readonly string[]): void {
    if (this.#ws.readyState !== this.#ws.OPEN) return;
    for (const message of messages) {
      this.#queue.push(message);
      this.#queued += message.length;
    }
    this.#flush();
  }

  /**
   * Returns undefined while there is room. Otherwise resolves when the client has read most of what
   * was sent, or the connection has closed.
   */
  room(): Promise<void> | undefined {
    if (this.#unread <= this.#maxBuffered || this.#ws.readyState !== this.#ws.OPEN) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
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
    if (this.#unread <= this.#maxBuffered * RESUME_SHARE) this.#wake();
  }

  /**
   * What the client has read since the last call: `stalled` if something waits and it has read
   * nothing.
   */
  progress(): 'idle' | 'reading' | 'stalled' {
    const hasRead = this.#read > this.#readBefore;
    this.#readBefore = this.#read;
    // A pong can only arrive if the connection is read.
    if (this.#paused) this.#resume();
    if (this.#waiting.length === 0 && this.#queue.length === 0) return 'idle';
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
    if (this.#paused) this.#resume();
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

  #resume(): void {
    this.#paused = false;
    this.#ws.resume();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/**
 * Where the fragment of a message that begins at `start` ends. Both halves of a surrogate pair are
 * in one fragment.
 */
function endOfFragment(message: string, start: number): number {
  const end = start + FRAGMENT;
  if (end >= message.length) return message.length;
  const last = message.charCodeAt(end - 1);
  return last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
}
