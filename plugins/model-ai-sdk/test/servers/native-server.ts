import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';

/** Awaited when the server comes to it. */
export type Wait = () => Promise<unknown>;

export type Body = Readonly<Record<string, unknown>>;

/** A scripted answer, in the terms that all providers share. */
export interface NativeAnswer {
  /** Thoughts in the order of the answer, before its text and its calls. */
  readonly thinking?: readonly string[];
  /** Each string is sent in an event of its own. */
  readonly text?: readonly (string | Wait)[];
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly input: object }[];
  /** The provider's own finish reason. Null: the answer ends without one. */
  readonly finish?: string | null;
  /**
   * Tokens: all of the prompt, those read from the cache, all of the answer, those of thoughts,
   * those written to the cache.
   */
  readonly usage?: readonly [prompt: number, cached: number, answer: number, thoughts: number, written?: number];
}

/** Any bytes in place of an answer. */
export interface RawAnswer {
  readonly frames: readonly (string | Uint8Array | Wait)[];
  /** Whether the socket is closed without an end. */
  readonly cut?: boolean;
}

/** An error status. */
export interface StatusAnswer {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Scripted = NativeAnswer | RawAnswer | StatusAnswer;

/** Thrown by a format for a request that the real server refuses. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status = 400,
    readonly code = '',
  ) {
    super(message);
  }
}

/**
 * What an image contains that no provider can process, in base64, and where one is that is gone.
 */
export const BROKEN = 'YnJva2Vu';
export const GONE = 'https://gone.example';

/** @throws Refused for the images and files that providers cannot process or fetch. */
export function refuseMedia(body: Body): void {
  const json = JSON.stringify(body);
  refuseIf(json.includes(BROKEN), 'Could not process image');
  refuseIf(json.includes(GONE), 'Unable to download the file. Please verify the URL and try again.');
}

/** The names of functions that every provider takes. */
export const FUNCTION_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * @throws Refused for the schema of a tool that is a combination: Anthropic and OpenAI refuse it.
 */
export function refuseCombination(schema: unknown, at: string): void {
  const isCombined = isRecord(schema) && ['oneOf', 'anyOf', 'allOf'].some((key) => schema[key] !== undefined);
  refuseIf(isCombined, `${at}: input_schema does not support oneOf, allOf, or anyOf at the top level`);
}

export function refuseIf(condition: unknown, message: string): void {
  if (condition) throw new Refused(message);
}

/** A request as the server received it. */
export interface NativeRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Body;
  readonly socket: Socket;
}

/** The events of an answer, in the order of the stream. */
export type Events<Event> = Generator<Event | Wait>;

interface FormatOptions<Event> extends Pick<Format, 'check' | 'errorBody'> {
  readonly contentType?: string;
  events(answer: NativeAnswer, request: NativeRequest): Events<Event>;
  frame(event: Event): string | Uint8Array;
}

/** The format of a provider, from the events of its answers and their frames. */
export function formatOf<Event extends object>(options: FormatOptions<Event>): Format {
  const { contentType = 'text/event-stream', check, errorBody, events, frame } = options;
  const frameOf = (event: Event | Wait) => (isWait(event) ? event : frame(event));
  return { contentType, check, errorBody, frames: (answer, request) => Array.from(events(answer, request), frameOf) };
}

function isWait(event: object): event is Wait {
  return typeof event === 'function';
}

/** An event with its name, as Anthropic and OpenAI send it. */
export function namedEvent(event: Body): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** The format of one provider. */
export interface Format {
  readonly contentType: string;
  /** @throws Refused what the real server refuses. */
  check(request: NativeRequest): void;
  frames(answer: NativeAnswer, request: NativeRequest): readonly (string | Uint8Array | Wait)[];
  errorBody(error: Refused): object;
}

/** A model server in a provider's own format: real HTTP on 127.0.0.1 without a model. */
export class NativeServer {
  readonly requests: NativeRequest[] = [];
  /** The messages of refused requests. */
  readonly refusals: string[] = [];
  readonly url: string;
  readonly #http: Server;
  readonly #format: Format;
  readonly #sockets = new Set<Socket>();
  readonly #queue: Scripted[] = [];
  #otherwise: (request: NativeRequest) => Scripted = () => ({ text: ['Hello'] });

  private constructor(http: Server, format: Format) {
    this.#http = http;
    this.#format = format;
    this.url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  }

  static async start(format: Format): Promise<NativeServer> {
    const http = createServer();
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const server = new NativeServer(http, format);
    http.on('connection', (socket) => {
      server.#sockets.add(socket);
      socket.on('close', () => server.#sockets.delete(socket));
    });
    http.on('request', async (incoming, response) => {
      const raw = await text(incoming).catch(() => '');
      const { url: path = '', headers, socket } = incoming;
      let request: NativeRequest;
      let script: Scripted;
      try {
        const body = parsed(raw);
        request = { path, headers, body, socket };
        server.requests.push(request);
        format.check(request);
        script = server.#queue.shift() ?? server.#otherwise(request);
      } catch (error) {
        const refused = error instanceof Refused ? error : new Refused(String(error), 500);
        server.refusals.push(refused.message);
        response.writeHead(refused.status, { 'content-type': 'application/json' }).end(JSON.stringify(format.errorBody(refused)));
        return;
      }
      if ('status' in script) {
        response.writeHead(script.status, { 'content-type': 'application/json', ...script.headers });
        response.end(typeof script.body === 'string' ? script.body : JSON.stringify(script.body));
        return;
      }
      response.writeHead(200, { 'content-type': format.contentType });
      response.flushHeaders();
      for (const frame of 'frames' in script ? script.frames : format.frames(script, request)) {
        if (typeof frame === 'function') await frame();
        else response.write(frame);
      }
      if ('frames' in script && script.cut) response.socket?.destroySoon();
      else response.end();
    });
    return server;
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  enqueue(...scripts: readonly Scripted[]): void {
    this.#queue.push(...scripts);
  }

  respond(script: (request: NativeRequest) => Scripted): void {
    this.#otherwise = script;
  }

  /** The frames of an answer, to be sent in part. */
  frames(answer: NativeAnswer): readonly (string | Uint8Array | Wait)[] {
    const last = this.requests.at(-1) ?? { path: '', headers: {}, body: { messages: [] }, socket: undefined as never };
    return this.#format.frames(answer, last);
  }

  async close(): Promise<void> {
    this.#http.close();
    this.#http.closeAllConnections();
    await once(this.#http, 'close');
  }
}

/** Providers refuse half a surrogate pair. */
function parsed(raw: string): Body {
  return JSON.parse(raw, (_, value) => {
    refuseIf(
      typeof value === 'string' && !value.isWellFormed(),
      'The request body is not valid JSON: no low surrogate in string',
    );
    return value;
  });
}

export function isRecord(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The items of a list in a request that are objects. */
export function listOf(value: unknown): readonly Body[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
