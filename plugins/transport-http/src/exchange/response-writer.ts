import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Timer } from '@plugboard/kernel';
import type { HttpReply } from '../routing/routes.js';
import { STALL_LIMIT, StreamedBody } from './streamed-body.js';

/**
 * How long the rest of a body that nobody wants is thrown away once its reply was sent. A connection closed with bytes unread is
 * reset, and the reset can overtake the reply (RFC 9112, 9.6).
 */
export const LINGER = 5_000;

/** How a reply ended, where its status does not tell. */
export type Ending = 'cancelled_by_client' | 'timeout' | 'agent_error' | 'draining';

export interface ReplyWatcher {
  /** The caller has gone before its reply was whole. */
  gone(): void;
  /** The connection has taken the reply, or is gone. Called once. */
  over(): void;
}

/**
 * Writes the one reply of a request, and minds the connection meanwhile. Whatever is given after the first reply, or after the
 * caller has gone, is dropped.
 */
export class ResponseWriter {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  readonly #watcher: ReplyWatcher;
  #phase: 'waiting' | 'begun' | 'whole' | 'gone' = 'waiting';
  #ending: Ending | undefined;
  #headAt: number | undefined;
  #patience: Timer | undefined;
  #over = false;

  constructor(req: IncomingMessage, res: ServerResponse, clock: Clock, watcher: ReplyWatcher) {
    this.#req = req;
    this.#res = res;
    this.#clock = clock;
    this.#watcher = watcher;
    res.once('close', () => this.#onClose());
  }

  /** Whether a reply can still be given. */
  get waiting(): boolean {
    return this.#phase === 'waiting';
  }

  get ending(): Ending | undefined {
    return this.#ending;
  }

  /** When the head was sent, on the clock's monotonic scale. */
  get headAt(): number | undefined {
    return this.#headAt;
  }

  /** @throws Error, with nothing sent, where a header cannot be sent. */
  whole(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    if (!this.waiting) return;
    const length = status === 204 ? undefined : { 'content-length': String(Buffer.byteLength(body)) };
    const unread = isUnread(this.#req);
    this.#head(status, { ...headers, ...length, ...(unread && CLOSE) });
    this.#phase = 'whole';
    if (unread) this.#sendAndLinger(body);
    else this.#end(body);
  }

  /** Ends when the body has, or the caller is gone. @throws what the body throws, and as `whole` does. */
  async stream(
    status: number,
    headers: Readonly<Record<string, string>>,
    body: AsyncIterable<string>,
    keepAlive: HttpReply['keepAlive'],
  ): Promise<void> {
    const iterator = body[Symbol.asyncIterator]();
    try {
      if (!this.waiting) return;
      this.#head(status, isUnread(this.#req) ? { ...headers, ...CLOSE } : headers);
      if (this.#req.method !== 'HEAD') {
        await new StreamedBody(this.#res, iterator, this.#clock, () => this.cut('timeout')).send(keepAlive);
      }
      if (this.#phase === 'begun') {
        this.#phase = 'whole';
        this.#end('');
      }
    } finally {
      await iterator.return?.();
    }
  }

  /** Destroys the connection, so that the caller cannot take what it got for the whole. */
  cut(ending: Ending): void {
    this.#ending ??= ending;
    this.#res.destroy();
  }

  #head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#res.writeHead(status, headers);
    this.#phase = 'begun';
    this.#headAt = this.#clock.monotonic();
  }

  #end(last: string): void {
    this.#res.end(last);
    if (this.#res.socket?.writableLength) this.#patience = this.#clock.after(STALL_LIMIT, () => this.cut('timeout'));
  }

  /** The reply is whole by its length: the caller need not wait for the connection's end to know it. */
  #sendAndLinger(body: string): void {
    const { socket } = this.#res;
    socket?.cork();
    this.#res.flushHeaders();
    this.#res.write(body);
    socket?.end();
    this.#req.once('end', () => socket?.destroy());
    this.#req.resume();
    this.#patience = this.#clock.after(LINGER, () => socket?.destroy());
    this.#finish();
  }

  #onClose(): void {
    this.#patience?.cancel();
    if (this.#phase !== 'whole') {
      this.#phase = 'gone';
      this.#ending ??= 'cancelled_by_client';
      this.#watcher.gone();
    }
    this.#finish();
  }

  #finish(): void {
    if (this.#over) return;
    this.#over = true;
    this.#watcher.over();
  }
}

const CLOSE = { connection: 'close' };

/** Whether some of the request's body is yet to come. */
function isUnread({ complete, headers }: IncomingMessage): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0);
}
