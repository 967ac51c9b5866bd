import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Answer, type Arguments, SlackConversations, SlackError } from './slack-conversations.js';
import { SlackSockets } from './slack-sockets.js';

/**
 * What a call of the Web API gets instead of its answer. `nothing` never answers and does nothing;
 * `lost` does what was asked and closes the connection; `done` does it, and then answers so.
 */
export type Script =
  | { readonly status: number; readonly retryAfter?: number }
  | { readonly error: string }
  | { readonly after: Promise<void> }
  | 'nothing'
  | 'lost';

/** A call of a method of the Web API. */
export interface SlackCall {
  readonly method: string;
  readonly args: Arguments;
  /** What it was answered: `ok`, the error of the platform, a status, `nothing` or `lost`. */
  outcome: string;
}

export const TEAM = 'T1';
export const BOT_TOKEN = 'xoxb-1-bot';
export const APP_TOKEN = 'xapp-1-app';
export const SIGNING_SECRET = '8f742231b10e8888abcd99yyyzzz85a5';

const IDENTITY = {
  url: 'https://work.example.com/',
  team: 'Work',
  team_id: TEAM,
  user: 'helper',
  user_id: 'UBOT',
  bot_id: 'BBOT',
};

/** The platform: its Web API over real HTTP, Socket Mode over real WebSockets, and its events. */
export class SlackServer {
  /** Every call, in order. */
  readonly calls: SlackCall[] = [];
  readonly conversations = new SlackConversations();
  readonly sockets = new SlackSockets();
  /** What the next calls of a method get instead of their answer. */
  readonly #scripts = new Map<string, Script[]>();
  readonly #files = new Map<string, { readonly type: string; readonly data: Uint8Array }>();
  readonly users = new Map<string, Readonly<Record<string, unknown>>>();
  readonly #server = createServer((request, response) => void this.#handle(request, response));
  url = '';
  /** Called with each call when it has come, and when it was done, before its answer is sent. */
  onCall: (call: SlackCall, stage: 'asked' | 'done') => Promise<void> | void = () => {};

  async start(): Promise<string> {
    this.#server.on('upgrade', (request, socket, head) => this.sockets.upgrade(request, socket, head));
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return this.url;
  }

  stop(): void {
    this.sockets.stop();
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** `apiUrl` of the entry. */
  get apiUrl(): string {
    return `${this.url}/api/`;
  }

  script(method: string, ...scripts: readonly Script[]): void {
    this.#scripts.set(method, [...(this.#scripts.get(method) ?? []), ...scripts]);
  }

  /** The calls of a method that were answered with `ok`. */
  done(method: string): readonly Arguments[] {
    return this.calls.filter((call) => call.method === method && call.outcome === 'ok').map(({ args }) => args);
  }

  /** Keeps a file. @returns it as messages have it. */
  file(name: string, mimetype: string, data: Uint8Array): Readonly<Record<string, unknown>> {
    const id = `F${this.#files.size + 1}`;
    this.#files.set(`/files/${id}`, { type: mimetype, data });
    const url_private = `${this.url}/files/${id}`;
    return { id, name, mimetype, filetype: name.split('.').at(-1), size: data.length, mode: 'hosted', url_private };
  }

  /** Sends an event or a form to the entry over HTTP, signed as the platform does. */
  async post(url: string, body: object | string, options: PostOptions = {}): Promise<Response> {
    const { secret = SIGNING_SECRET, timestamp = Math.floor(Date.now() / 1000), headers = {} } = options;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/json';
    const hash = createHmac('sha256', secret).update(`v0:${timestamp}:${text}`).digest('hex');
    const signed = { 'x-slack-request-timestamp': String(timestamp), 'x-slack-signature': `v0=${hash}` };
    return fetch(url, { method: 'POST', headers: { 'content-type': type, ...signed, ...headers }, body: text });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', 'http://slack');
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    if (pathname.startsWith('/files/')) return this.#sendFile(request, response, pathname);
    const method = pathname.slice('/api/'.length);
    const call = { method, args: Object.fromEntries(new URLSearchParams(body)), outcome: '…' };
    this.calls.push(call);
    const script = this.#scripts.get(method)?.shift();
    await this.onCall(call, 'asked');
    await this.#answer(call, script, request, response);
  }

  async #answer(call: SlackCall, script: Script | undefined, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (script === 'nothing') {
      call.outcome = 'nothing';
      return;
    }
    if (typeof script === 'object' && 'after' in script) await script.after;
    if (typeof script === 'object' && 'status' in script) {
      call.outcome = String(script.status);
      const headers = script.retryAfter === undefined ? {} : { 'retry-after': String(script.retryAfter) };
      return void response.writeHead(script.status, headers).end('not now');
    }
    let answer: Answer;
    try {
      if (typeof script === 'object' && 'error' in script) throw new SlackError(script.error);
      const token = request.headers.authorization?.replace('Bearer ', '');
      if (token !== (call.method === 'apps.connections.open' ? APP_TOKEN : BOT_TOKEN)) throw new SlackError('invalid_auth');
      answer = { ok: true, ...this.#call(call.method, call.args) };
      call.outcome = 'ok';
    } catch (error) {
      if (!(error instanceof SlackError)) throw error;
      call.outcome = error.message;
      answer = { ok: false, error: error.message };
    }
    await this.onCall(call, 'done');
    if (script === 'lost') {
      call.outcome = 'lost';
      return void response.destroy();
    }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
  }

  #call(method: string, args: Arguments): Answer {
    if (method === 'auth.test') return IDENTITY;
    if (method === 'apps.connections.open') return { url: this.sockets.address(this.url) };
    if (method === 'users.info') {
      const user = this.users.get(String(args.user));
      if (!user) throw new SlackError('user_not_found');
      return { user };
    }
    const answer = this.conversations.call(method, args);
    if (!answer) throw new SlackError('unknown_method');
    return answer;
  }

  #sendFile(request: IncomingMessage, response: ServerResponse, pathname: string): void {
    const file = this.#files.get(pathname);
    const isAllowed = request.headers.authorization === `Bearer ${BOT_TOKEN}`;
    this.calls.push({ method: 'file', args: { pathname }, outcome: isAllowed ? 'ok' : 'login page' });
    // Without the scope the platform answers with its login page, and status 200.
    if (!isAllowed || !file) return void response.setHeader('content-type', 'text/html').end('<html>Sign in</html>');
    response.setHeader('content-type', file.type).end(file.data);
  }
}

interface PostOptions {
  readonly secret?: string;
  /** Seconds since the epoch. */
  readonly timestamp?: number;
  readonly headers?: Readonly<Record<string, string>>;
}
