import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ChatRequest, echo, type Script } from './model-script.js';
import { type Audience, perform } from './script-performance.js';

export * from './model-script.js';

/** Decides what is done with a request. */
export type Scripter = (request: ReceivedRequest) => Script | Promise<Script>;

/** A request that has arrived, and what became of it. */
export interface ReceivedRequest {
  /** With the query, for example `/v1/chat/completions`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
  /** Which connection it came on, counted from 1: two requests of one number shared it. */
  readonly connection: number;
  /** How many events or raw pieces the caller's socket has had room for so far. */
  readonly sent: number;
  /** `aborted`: the caller closed the connection before the script was at its end. A cut that the script asks for is an answer. */
  readonly state: 'open' | 'answered' | 'aborted';
  /** Resolves when the state is no longer `open`. */
  readonly ended: Promise<'answered' | 'aborted'>;
}

/**
 * A model server that does what a test tells it: real HTTP on 127.0.0.1, and no model behind it.
 *
 * 1. A test starts one, and gives its `url` to the connector, or the whole server, under test.
 * 2. Each `POST …/chat/completions` is met by the next script of the queue, else by what `respond` was given last, else by `echo`: with the
 *    last user message. `stream: true` is answered with an event stream, anything else with JSON, both from the same description.
 * 3. What has arrived is in `requests`, in order; `received` waits for one.
 * 4. `close` ends it, whatever it was in the middle of.
 *
 * ```ts
 * const server = await ModelServer.start();
 * server.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: ['It is', ' noon.'] });
 * server.respond(({ body }) => ({ text: `You sent ${body.messages.length} messages.` }));
 * …
 * await server.close();
 * ```
 *
 * Nothing here waits for time to pass: a script that is to be slow, or to stall, holds promises (see `Pieces`).
 */
export class ModelServer {
  /** The base URL, as a connector's options have it: `http://127.0.0.1:40123/v1`. */
  readonly url: string;
  readonly #http: Server;
  readonly #requests: Received[] = [];
  readonly #queue: Script[] = [];
  #otherwise: Scripter = ({ body }) => echo(body);
  readonly #connections = new Map<Socket, number>();
  #connectionCount = 0;
  #arrivals: (() => void)[] = [];

  private constructor(http: Server) {
    this.#http = http;
    this.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/v1`;
    http.on('connection', (socket: Socket) => {
      this.#connections.set(socket, ++this.#connectionCount);
      socket.on('close', () => this.#connections.delete(socket));
    });
    http.on('request', (request, response) => void this.#handle(request, response));
  }

  /** @param port of 127.0.0.1; a free one where it is left out. */
  static async start(port = 0): Promise<ModelServer> {
    const http = createServer();
    http.listen(port, '127.0.0.1');
    await once(http, 'listening');
    return new ModelServer(http);
  }

  /** A URL where nobody listens: connections are refused. */
  static async refusedUrl(): Promise<string> {
    const server = await ModelServer.start();
    await server.close();
    return server.url;
  }

  /** All that has arrived, oldest first. */
  get requests(): readonly ReceivedRequest[] {
    return this.#requests;
  }

  /** How many connections are open. */
  get openConnections(): number {
    return this.#connections.size;
  }

  /** What the next requests are met with, one each. */
  enqueue(...scripts: Script[]): void {
    this.#queue.push(...scripts);
  }

  /** What every request is met with, from now on, for which nothing is queued. */
  respond(script: Script | Scripter): void {
    this.#otherwise = typeof script === 'function' ? script : () => script;
  }

  /** Waits for the request of that number, counted from 1. */
  async received(number: number): Promise<ReceivedRequest> {
    for (;;) {
      const request = this.#requests[number - 1];
      if (request) return request;
      await new Promise<void>((resolve) => this.#arrivals.push(resolve));
    }
  }

  /** Stops listening and closes every connection. Calling it again does nothing. */
  async close(): Promise<void> {
    if (!this.#http.listening) return;
    this.#http.close();
    this.#http.closeAllConnections();
    await once(this.#http, 'close');
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST' || !/\/chat\/completions(\?|$)/.test(request.url ?? '')) {
      return refuse(response, 404, `Invalid URL (${request.method} ${request.url})`);
    }
    const connection = this.#connections.get(request.socket) ?? 0;
    let body: ChatRequest;
    try {
      body = JSON.parse(await text(request));
    } catch {
      // Either it is no JSON, or the caller has gone, and then nobody reads this.
      return refuse(response, 400, 'We could not parse the JSON body of your request.');
    }
    const received = new Received(request, body, connection, response);
    this.#requests.push(received);
    for (const arrived of this.#arrivals.splice(0)) arrived();
    try {
      await perform(this.#queue.shift() ?? (await this.#otherwise(received)), received, response);
    } catch (error) {
      // A fault of the test's own script: said where the test will see it.
      if (response.headersSent) response.destroy();
      else refuse(response, 500, `the script of the model server threw ${error}`);
    }
  }
}

class Received implements ReceivedRequest, Audience {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
  readonly connection: number;
  readonly ended: Promise<'answered' | 'aborted'>;
  sent = 0;
  state: ReceivedRequest['state'] = 'open';
  isDone = false;

  constructor(request: IncomingMessage, body: ChatRequest, connection: number, response: ServerResponse) {
    this.path = request.url ?? '';
    this.headers = request.headers;
    this.body = body;
    this.connection = connection;
    this.ended = new Promise((resolve) => {
      response.on('close', () => {
        const state = this.isDone ? 'answered' : 'aborted';
        this.state = state;
        resolve(state);
      });
    });
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }));
}
