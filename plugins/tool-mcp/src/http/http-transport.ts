import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client';
import type { Clock, IdSource } from '@plugboard/kernel';
import { currentExchange, type Exchange, type Fetch } from './fetch.js';
import { HttpFailure } from './http-failure.js';

/** Milliseconds between two attempts to open a stream again. */
const MIN_RECONNECT_DELAY = 1000;
/** Answers to requests of the server that may be on their way; the rest are dropped (S-75). */
const MAX_ANSWERS = 16;
/** The code of errors that this transport makes. Their `data` is the `HttpFailure`. */
const INTERNAL_ERROR = -32603;

interface HttpTransportOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly ids: IdSource;
}

type OnMessage = NonNullable<Transport['onmessage']>;

/**
 * The SDK's transport over HTTP, with what it lacks: a request whose response ends without an
 * answer fails at once, and one that was cancelled gives up its response.
 */
export class HttpTransport implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: OnMessage;
  readonly #inner: StreamableHTTPClientTransport;
  /** Requests without an answer, by id, with what ends them. */
  readonly #open = new Map<string | number, AbortController>();
  #answers = 0;

  constructor({ url, headers, fetch, clock, ids }: HttpTransportOptions) {
    this.#inner = new StreamableHTTPClientTransport(url, {
      fetch,
      requestInit: { headers },
      reconnectionScheduler: (reconnect, delay) => {
        // A proxy that cuts all streams at once must not have all of them back at once.
        const timer = clock.after(Math.max(MIN_RECONNECT_DELAY, delay) * (1 + ids.fraction()), reconnect);
        return () => timer.cancel();
      },
    });
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  async start(): Promise<void> {
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message: JSONRPCMessage) => {
      if (isJSONRPCResponse(message) && message.id !== undefined) this.#open.delete(message.id);
      this.onmessage?.(message);
    };
    await this.#inner.start();
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (isJSONRPCRequest(message)) return this.#request(message, options);
    if (isJSONRPCResponse(message)) return this.#answer(message, options);
    await this.#inner.send(message, options);
    if (!isJSONRPCNotification(message) || message.method !== 'notifications/cancelled') return;
    const id = message.params?.requestId;
    if (typeof id === 'string' || typeof id === 'number') this.#open.get(id)?.abort();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Ends the session at the server, if there is one. */
  async terminateSession(): Promise<void> {
    await this.#inner.terminateSession();
  }

  async #request(
    message: Extract<JSONRPCMessage, { id: unknown; method: string }>,
    options: TransportSendOptions,
  ): Promise<void> {
    const { id } = message;
    const own = new AbortController();
    const exchange: Exchange = { isStream: false, failure: undefined };
    const { requestSignal, onRequestStreamEnd } = options;
    this.#open.set(id, own);
    const ended = () => {
      if (onRequestStreamEnd) return onRequestStreamEnd();
      this.#unanswered(id, exchange.failure ?? new HttpFailure('broken', 'its response ended without an answer'));
    };
    try {
      await currentExchange.run(exchange, () =>
        this.#inner.send(message, {
          ...options,
          requestSignal: requestSignal ? AbortSignal.any([requestSignal, own.signal]) : own.signal,
          onRequestStreamEnd: ended,
        }),
      );
    } catch (error) {
      this.#open.delete(id);
      throw exchange.failure ?? error;
    }
    if (!exchange.isStream) ended();
  }

  async #answer(message: JSONRPCMessage, options: TransportSendOptions): Promise<void> {
    if (this.#answers >= MAX_ANSWERS) return;
    this.#answers += 1;
    try {
      await this.#inner.send(message, options);
    } finally {
      this.#answers -= 1;
    }
  }

  #unanswered(id: string | number, failure: HttpFailure): void {
    if (!this.#open.delete(id)) return;
    if (typeof id === 'number') {
      const error = { code: INTERNAL_ERROR, message: failure.message, data: failure };
      this.onmessage?.({ jsonrpc: '2.0', id, error });
    } else {
      // The probe: an error of the server would say that it speaks the old revision.
      this.onclose?.();
    }
  }
}
