import {
  type ChatRequest,
  type LogLine,
  ModelServer,
  type StartedServer,
  type StartServerOptions,
  startServer,
} from '@plugboard/testing';
import type { Test } from 'tap';
import { LiveStream } from './live-stream.js';
import { readEventStream, type Streamed } from './server-sent-events.js';

/** What nearly every distribution serves, on a free port. */
export const TRANSPORTS = `
transports:
  http: { port: 0 }
  chat-completions: {}
  models: {}
  health: {}
  sse: {}
`;

/** One agent over the scripted model server. */
export const ASSISTANT = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast, system: You are the assistant. }
`;

/** What the model server is sent as its key: it must never be seen anywhere else. */
export const MODEL_KEY = 'sk-model-key-of-the-tests';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed text. @throws where it is no JSON. */
  readonly body: unknown;
}

interface StreamReply extends Streamed {
  readonly status: number;
  readonly headers: Headers;
}

/** A whole server, and the scripted model server that its agents ask, until the test is over. */
export class TestServer {
  #stopped: Promise<void> | undefined;

  private constructor(
    readonly started: StartedServer,
    readonly models: ModelServer,
  ) {}

  /**
   * @param config as YAML, in which `${MODEL_URL}` and `${MODEL_KEY}` stand for the model server;
   *   or made for the URL of that.
   */
  static async start(
    t: Test,
    config: string | ((models: string) => Exclude<Parameters<typeof startServer>[0], string>) = TRANSPORTS + ASSISTANT,
    { env, ...options }: StartServerOptions = {},
  ): Promise<TestServer> {
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const made = typeof config === 'string' ? config : config(models.url);
    const server = await startServer(made, { env: { MODEL_URL: models.url, MODEL_KEY, ...env }, ...options });
    const app = new TestServer(server, models);
    t.teardown(() => (app.#stopped ? undefined : app.stop()));
    return app;
  }

  /** Stops the server before the test is over. @throws as the server does. */
  stop(): Promise<void> {
    this.#stopped ??= this.started.stop();
    return this.#stopped;
  }

  get url(): string {
    return this.started.url;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** The lines of the access log. */
  get accessLog(): readonly LogLine[] {
    return this.started.logs.filter(({ msg }) => msg === 'request');
  }

  /** What the model server was asked last. */
  get asked(): ChatRequest {
    const last = this.models.requests.at(-1);
    if (!last) throw new Error('the model server was asked nothing');
    return last.body;
  }

  /** `POST /v1/chat/completions`. A string goes out as it stands. */
  async chat(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return replyOf(await this.#post(body, headers));
  }

  /** The same with `stream: true`, read to its end. */
  async stream(body: object, headers: Readonly<Record<string, string>> = {}): Promise<StreamReply> {
    const response = await this.#post({ stream: true, ...body }, headers);
    return { status: response.status, headers: response.headers, ...readEventStream(await response.text()) };
  }

  /** The same, to be read as it comes. Resolves when the head is there. */
  async open(body: object, headers: Readonly<Record<string, string>> = {}, path = '/v1/chat/completions'): Promise<LiveStream> {
    const abort = new AbortController();
    return new LiveStream(await this.#send('POST', path, headers, { stream: true, ...body }, abort.signal), abort);
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    return this.request('GET', path, headers);
  }

  /** A body is sent as JSON, a string as it stands. */
  async request(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: unknown): Promise<Reply> {
    return replyOf(await this.#send(method, path, headers, body));
  }

  #post(body: unknown, headers: Readonly<Record<string, string>>): Promise<Response> {
    return this.#send('POST', '/v1/chat/completions', headers, body);
  }

  #send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>>,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }
}

/** A request that says this to the assistant. */
export function saying(text: string, fields: object = {}) {
  return { model: 'assistant', messages: [{ role: 'user', content: text }], ...fields };
}

/** The answer's text. */
export function answerOf({ body, text }: Reply): string {
  const { choices } = body as { choices?: [{ message: { content: string } }] };
  if (!choices) throw new Error(`no completion: ${text}`);
  return choices[0].message.content;
}

/** What stands under `error`. */
export function errorOf({ body, text }: Reply): Readonly<Record<string, unknown>> {
  const { error } = body as { error?: Record<string, unknown> };
  if (!error) throw new Error(`no error: ${text}`);
  return error;
}

async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    text,
    get body() {
      return JSON.parse(text);
    },
  };
}
