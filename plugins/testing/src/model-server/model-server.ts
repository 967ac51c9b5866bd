import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type ChatRequest, echo, type Script } from './script.js';
import { playScript, type ScriptedRequest } from './script-player.js';

export * from './script.js';

/** Chooses the script for a request. @experimental */
export type Scripter = (request: ReceivedRequest) => Script | Promise<Script>;

/** A request that the server received, and its state. @experimental */
export interface ReceivedRequest {
  /** With the query, for example `/v1/chat/completions`. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
  /** The body as it was received. */
  readonly text: string;
  /** Number of its connection, from 1. Requests with the same number shared a connection. */
  readonly connection: number;
  /** Number of events or raw pieces written so far. */
  readonly sent: number;
  /** `aborted`: the client closed the connection before the script, or its `cut`, ended it. */
  readonly state: 'open' | 'answered' | 'aborted';
  /** Resolves when the state is no longer `open`. */
  readonly ended: Promise<'answered' | 'aborted'>;
}

/**
 * A scripted model server: real HTTP on 127.0.0.1 without a model.
 *
 * 1. A test starts one and gives its `url` to the connector or server under test.
 * 2. Each `POST …/chat/completions` is handled by the next script of the queue, else by the last
 *    `respond`, else by `echo`, which answers with the last user message. The same answer is sent
 *    as an event stream (`stream: true`) or as JSON.
 * 3. `requests` lists the received requests in order; `received` waits for one.
 * 4. `close` closes all connections, even during an answer.
 *
 * ```ts
 * const server = await ModelServer.start();
 * server.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { text: ['It is', ' noon.'] });
 * server.respond(({ body }) => ({ text: `You sent ${body.messages.length} messages.` }));
 * …
 * await server.close();
 * ```
 *
 * Scripts do not use timers. To make one slow or stall it, put promises into it (see `Pieces`).
 *
 * @experimental
 */
export class ModelServer {
  /** The base URL for a connector's options: `http://127.0.0.1:40123/v1`. */
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

  /** @param port a port of 127.0.0.1, by default a free one. */
  static async start(port = 0): Promise<ModelServer> {
    const http = createServer();
    http.listen(port, '127.0.0.1');
    await once(http, 'listening');
    return new ModelServer(http);
  }

  /** A URL that refuses connections. */
  static async refusedUrl(): Promise<string> {
    const server = await ModelServer.start();
    await server.close();
    return server.url;
  }

  /** All received requests, oldest first. */
  get requests(): readonly ReceivedRequest[] {
    return this.#requests;
  }

  /** Number of open connections. */
  get openConnections(): number {
    return this.#connections.size;
  }

  /** Adds scripts for the next requests, one each. */
  enqueue(...scripts: Script[]): void {
    this.#queue.push(...scripts);
  }

  /** Sets the script for all requests from now on that find the queue empty. */
  respond(script: Script | Scripter): void {
    this.#otherwise = typeof script === 'function' ? script : () => script;
  }

  /** Waits for the request with that number, from 1. */
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
    let sent = '';
    let body: ChatRequest;
    try {
      sent = await text(request);
      body = JSON.parse(sent);
    } catch {
      // Invalid JSON, or the client disconnected and does not read this.
      return refuse(response, 400, 'We could not parse the JSON body of your request.');
    }
    const received = new Received(request, { body, text: sent }, connection, response);
    this.#requests.push(received);
    for (const arrived of this.#arrivals.splice(0)) arrived();
    try {
      await playScript(this.#queue.shift() ?? (await this.#otherwise(received)), received, response);
    } catch (error) {
      // A mistake in the test's script: report it where the test sees it.
      if (response.headersSent) response.destroy();
      else refuse(response, 500, `the script of the model server threw: ${error}`);
    }
  }
}

class Received implements ReceivedRequest, ScriptedRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: ChatRequest;
  readonly text: string;
  readonly connection: number;
  readonly ended: Promise<'answered' | 'aborted'>;
  sent = 0;
  state: ReceivedRequest['state'] = 'open';
  isDone = false;

  constructor(
    request: IncomingMessage,
    { body, text }: Pick<ReceivedRequest, 'body' | 'text'>,
    connection: number,
    response: ServerResponse,
  ) {
    this.path = request.url ?? '';
    this.headers = request.headers;
    this.body = body;
    this.text = text;
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
