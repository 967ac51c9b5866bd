import { once } from 'node:events';
import type { Test } from 'tap';
import { type ClientOptions, WebSocket } from 'ws';
import type { TestServer } from './test-server.js';

/** An event of the server, as far as tests look into it. */
export interface LiveEvent {
  readonly type: string;
  readonly sequence_number?: number;
  readonly stream_id?: string;
  readonly delta?: string;
  readonly status?: number;
  readonly error?: {
    readonly type: string;
    readonly code: string | null;
    readonly message: string;
    readonly param: string | null;
  };
  readonly response?: LiveResponseBody;
  readonly [field: string]: unknown;
}

export interface LiveResponseBody {
  readonly id: string;
  readonly status: string;
  readonly output: readonly { readonly id: string; readonly type: string; readonly [field: string]: unknown }[];
  readonly incomplete_details: { readonly reason: string } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly [field: string]: unknown;
}

interface LiveSocketOptions extends ClientOptions {
  /** With the query. */
  readonly path?: string;
  readonly token?: string;
  readonly protocols?: readonly string[];
}

const TERMINAL = new Set(['response.completed', 'response.failed', 'response.incomplete', 'error']);

/** A WebSocket client of a test server. Keeps every event until a test has read it. */
export class LiveSocket {
  readonly ws: WebSocket;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  readonly #events: LiveEvent[] = [];
  #read = 0;
  #arrived = Promise.withResolvers<void>();

  private constructor(ws: WebSocket) {
    this.ws = ws;
    this.closed = new Promise((resolve) => ws.once('close', (code, reason) => resolve({ code, reason: String(reason) })));
    ws.on('message', (data) => {
      this.#events.push(JSON.parse(String(data)));
      this.#wake();
    });
    ws.once('close', () => this.#wake());
    ws.on('error', () => {});
  }

  /** Opens a connection. @throws Error with the status if the upgrade is refused. */
  static async open(t: Test, app: Pick<TestServer, 'url'>, options: LiveSocketOptions = {}): Promise<LiveSocket> {
    const { path = '/v1/responses', token, protocols = [], headers, ...rest } = options;
    const all = { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers };
    const ws = new WebSocket(app.url.replace(/^http/, 'ws') + path, [...protocols], { headers: all, ...rest });
    const live = new LiveSocket(ws);
    t.teardown(() => ws.terminate());
    await once(ws, 'open');
    return live;
  }

  /** The status and the error body of an upgrade that is refused. @throws Error if it is not. */
  static async refused(t: Test, app: Pick<TestServer, 'url'>, options: LiveSocketOptions = {}) {
    const { path = '/v1/responses', token, protocols = [], headers, ...rest } = options;
    const all = { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers };
    const ws = new WebSocket(app.url.replace(/^http/, 'ws') + path, [...protocols], { headers: all, ...rest });
    ws.on('error', () => {});
    t.teardown(() => ws.terminate());
    const [, response] = await once(ws, 'unexpected-response');
    let text = '';
    for await (const chunk of response) text += chunk;
    ws.terminate();
    return { status: response.statusCode as number, headers: response.headers, error: JSON.parse(text).error };
  }

  /** Everything that has arrived. */
  get events(): readonly LiveEvent[] {
    return this.#events;
  }

  /** A string is sent as it is. */
  send(message: object | string): void {
    this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  create(fields: object): void {
    this.send({ type: 'response.create', ...fields });
  }

  /** The next event that was not read yet. @throws Error if the connection closes first. */
  async next(): Promise<LiveEvent> {
    for (;;) {
      const event = this.#events[this.#read];
      if (event) {
        this.#read++;
        return event;
      }
      if (this.ws.readyState === WebSocket.CLOSED) throw new Error('the connection has closed');
      await this.#arrived.promise;
    }
  }

  /** The next events up to one of this type. */
  async until(type: string): Promise<readonly LiveEvent[]> {
    const events: LiveEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (event.type === type) return events;
      if (event.type === 'error') throw new Error(`${JSON.stringify(event.error)} instead of ${type}`);
    }
  }

  /** The next events up to a terminal one, which may be an `error`. */
  async turn(): Promise<readonly LiveEvent[]> {
    const events: LiveEvent[] = [];
    for (;;) {
      const event = await this.next();
      events.push(event);
      if (TERMINAL.has(event.type)) return events;
    }
  }

  /** Creates a response and waits for its end. @throws Error if it is not accepted. */
  async ask(fields: object): Promise<LiveResponseBody> {
    this.create(fields);
    const { response, error } = (await this.turn()).at(-1) ?? {};
    if (!response) throw new Error(JSON.stringify(error));
    return response;
  }

  /** Creates a response that is not accepted. */
  async refuse(fields: object): Promise<LiveEvent> {
    this.create(fields);
    const event = (await this.turn()).at(-1);
    if (event?.type !== 'error') throw new Error(`accepted: ${JSON.stringify(event)}`);
    return event;
  }

  /** Waits until the server has handled everything that was sent so far. */
  async roundTrip(): Promise<void> {
    this.send({ type: 'svc:ping', id: 'round-trip' });
    await this.until('svc:pong');
  }

  #wake(): void {
    this.#arrived.resolve();
    this.#arrived = Promise.withResolvers<void>();
  }
}

/** The text of a response. */
export function textOf({ output }: LiveResponseBody): string {
  const messages = output.filter(({ type }) => type === 'message') as unknown as { content: { text: string }[] }[];
  return messages.flatMap(({ content }) => content.map(({ text }) => text)).join('');
}
