import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import type { HttpReply } from '../routing/routes.js';
import { ASCII, STALL_LIMIT, StreamedBody } from './streamed-body.js';

/**
 * Milliseconds for which the rest of a refused body is read and discarded after the reply. Closing
 * a connection with unread bytes resets it, and the reset can overtake the reply (RFC 9112, 9.6).
 */
export const LINGER = 5_000;

/** How a reply ended, if not normally. */
export type ReplyOutcome = 'cancelled_by_client' | 'timeout' | 'agent_error' | 'draining';

export interface ReplyObserver {
  /** Called when the caller disconnects before the reply is complete. */
  onDisconnect(): void;
  /** Called once, when the reply has been sent or the connection is closed. */
  onEnd(): void;
}

/**
 * Writes the single reply of a request and watches its connection. Replies after the first one, or
 * after a disconnect, are ignored.
 */
export class ResponseWriter {
  /** Whether the body of the request has been read to its end. */
  bodyIsRead = false;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #observer: ReplyObserver;
  #phase: 'pending' | 'started' | 'complete' | 'upgraded' | 'disconnected' = 'pending';
  #outcome: ReplyOutcome | undefined;
  #headAt: number | undefined;
  #timer: Timer | undefined;
  #ended = false;
  #upgraded: Socket | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, clock: Clock, observer: ReplyObserver) {
    this.#req = req;
    this.#res = res;
    this.#clock = clock;
    this.#observer = observer;
    res.once('close', () => this.#onClose());
  }

  /** Whether no reply has been started and the caller is still connected. */
  get pending(): boolean {
    return this.#phase === 'pending';
  }

  get outcome(): ReplyOutcome | undefined {
    return this.#outcome;
  }

  /** When the head was written, on the clock's monotonic scale. */
  get headAt(): number | undefined {
    return this.#headAt;
  }

  /**
   * Sends a complete reply and adds the headers that belong to it. @param bytes the length of the
   * body. @throws Error, with nothing sent, if a header is invalid.
   */
  send(status: number, headers: Record<string, string>, body: string | Uint8Array, bytes: number): void {
    if (!this.pending) return;
    if (status !== 204 && status !== 304) headers['content-length'] = String(bytes);
    const unread = this.#isUnread();
    if (unread) headers.connection = 'close';
    this.#writeHead(status, headers);
    this.#phase = 'complete';
    if (unread) this.#sendAndLinger(body);
    else this.#end(body, bytes === body.length ? ASCII : 'utf8');
  }

  /**
   * Sends a streamed reply; resolves at its end or when the caller disconnects.
   *
   * @throws what the body throws, and as `send` does.
   */
  async stream(
    status: number,
    headers: Record<string, string>,
    body: AsyncIterable<string>,
    keepAlive: HttpReply['keepAlive'],
  ): Promise<void> {
    const iterator = body[Symbol.asyncIterator]();
    try {
      if (!this.pending) return;
      if (this.#isUnread()) headers.connection = 'close';
      this.#writeHead(status, headers);
      if (this.#req.method !== 'HEAD') {
        await new StreamedBody(this.#res, iterator, this.#clock, () => this.destroy('timeout')).send(keepAlive);
      }
      if (this.#phase === 'started') {
        this.#phase = 'complete';
        this.#end('', ASCII);
      }
    } finally {
      await iterator.return?.();
    }
  }

  /**
   * Hands the connection over until it is closed. Its new owner sees the end first, so that it can
   * add to the access log.
   */
  release(socket: Socket): void {
    this.#phase = 'upgraded';
    this.#headAt = this.#clock.monotonic();
    this.#upgraded = socket;
    this.#res.detachSocket(socket);
    socket.once('close', () => setImmediate(() => this.#onClose()));
  }

  /**
   * Destroys the connection, so that the caller does not take a partial reply for a complete one.
   */
  destroy(outcome: ReplyOutcome): void {
    this.#outcome ??= outcome;
    if (this.#upgraded) this.#upgraded.destroy();
    else this.#res.destroy();
  }

  #writeHead(status: number, headers: Readonly<Record<string, string>>): void {
    this.#res.writeHead(status, headers);
    this.#phase = 'started';
    this.#headAt = this.#clock.monotonic();
  }

  #end(last: string | Uint8Array, encoding: BufferEncoding): void {
    this.#res.end(last, encoding);
    if (this.#res.socket?.writableLength) this.#timer = this.#clock.after(STALL_LIMIT, () => this.destroy('timeout'));
  }

  /**
   * Closes the connection gracefully while bytes of the request still arrive. The `content-length`
   * tells the caller where the reply ends.
   */
  #sendAndLinger(body: string | Uint8Array): void {
    const { socket } = this.#res;
    socket?.cork();
    this.#res.flushHeaders();
    this.#res.write(body);
    socket?.end();
    this.#req.once('end', () => socket?.destroy());
    this.#req.resume();
    this.#timer = this.#clock.after(LINGER, () => socket?.destroy());
    this.#finish();
  }

  /** Whether part of the request body has not arrived yet. */
  #isUnread(): boolean {
    if (this.#req.complete || this.bodyIsRead) return false;
    const { headers } = this.#req;
    return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  }

  #onClose(): void {
    this.#timer?.cancel();
    if (this.#phase !== 'complete') {
      this.#phase = 'disconnected';
      if (!this.#upgraded) this.#outcome ??= 'cancelled_by_client';
      this.#observer.onDisconnect();
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#observer.onEnd();
  }
}
