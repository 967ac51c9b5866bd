import { endsTurn } from './turn.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */

/** Where the API is: the page is at `…/playground`, the API beside it, also behind a proxy that adds a prefix. */
export const BASE = new URL('.', location.href);

/** A request that was answered with an error, or not at all (status 0). */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} code */
  constructor(status, message, code = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const TOKEN = 'plugboard.token';

/** @typedef {(direction: 'in' | 'out' | 'http', label: string, note: string | number, data: object) => void} Note tells the event log */

/** Calls the API with the token of this tab. The token is in `sessionStorage` and nowhere else. */
export class Api {
  #note;

  /** @param {Note} note */
  constructor(note) {
    this.#note = note;
  }

  get token() {
    return sessionStorage.getItem(TOKEN) ?? '';
  }

  set token(value) {
    if (value === '') sessionStorage.removeItem(TOKEN);
    else sessionStorage.setItem(TOKEN, value);
  }

  /** @param {string} path below the API's base, for example `v1/models` */
  get(path) {
    return this.#json('GET', path);
  }

  /** @param {string} path @param {object} [body] */
  post(path, body) {
    return this.#json('POST', path, body);
  }

  /** @param {string} path */
  delete(path) {
    return this.#json('DELETE', path);
  }

  /**
   * Sends a request and returns the reply once its head has come.
   * @param {string} method @param {string} path @param {object} [body] @param {AbortSignal} [signal]
   * @throws {ApiError} where the status is not 2xx
   */
  async send(method, path, body, signal) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (this.token !== '') headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    const started = performance.now();
    /** @param {number} status */
    const done = (status) => {
      const ms = Math.round(performance.now() - started);
      if (path !== 'health') this.#note('http', `${method} /${path}`, status || 'failed', { method, path, status, ms, body });
    };
    /** @type {Response} */
    let reply;
    try {
      reply = await fetch(new URL(path, BASE), {
        method,
        headers,
        cache: 'no-store',
        credentials: 'omit',
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      });
    } catch (error) {
      done(0);
      if (signal?.aborted) throw error;
      throw new ApiError(0, 'The server cannot be reached.');
    }
    done(reply.status);
    if (reply.ok) return reply;
    throw await errorOf(reply);
  }

  /** @param {string} method @param {string} path @param {object} [body] */
  async #json(method, path, body) {
    const reply = await this.send(method, path, body);
    return reply.json();
  }
}

/** @param {Response} reply */
async function errorOf(reply) {
  try {
    const { error } = await reply.json();
    return new ApiError(reply.status, String(error.message), error.code ?? null);
  } catch {
    return new ApiError(reply.status, `The server answered with status ${reply.status}.`);
  }
}

/**
 * Runs a turn over `POST /v1/chat/completions`, for servers without the live surface, and tells it in the events of the Responses protocol.
 * Tool calls do not show there.
 *
 * @param {Api} api @param {object} request the body, without `stream`
 * @param {(event: ProtocolEvent) => void} onEvent @param {AbortSignal} signal aborted to stop the turn
 * @throws {ApiError} where the request is refused or the stream breaks off
 */
export async function runChat(api, request, onEvent, signal) {
  const body = { ...request, stream: true, stream_options: { include_usage: true } };
  const reply = await api.send('POST', 'v1/chat/completions', body, signal);
  const response = { id: '', status: 'in_progress' };
  onEvent({ type: 'response.created', response });
  for await (const data of eventData(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (reply.body))) {
    if (data === '[DONE]') break;
    const { error, usage, choices } = JSON.parse(data);
    if (error) return onEvent({ type: 'response.failed', response: { status: 'failed', error } });
    if (usage) Object.assign(response, { usage: usageOf(usage) });
    const [{ delta = {}, finish_reason = null } = {}] = choices ?? [];
    const text = delta.content ?? delta.refusal;
    if (text) onEvent({ type: 'response.output_text.delta', item_id: 'msg', delta: text });
    if (finish_reason === 'length')
      Object.assign(response, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  }
  if (response.status === 'in_progress') response.status = 'completed';
  onEvent({ type: response.status === 'completed' ? 'response.completed' : 'response.incomplete', response });
}

/** @param {{ prompt_tokens: number, completion_tokens: number, total_tokens: number }} usage */
function usageOf({ prompt_tokens, completion_tokens, total_tokens }) {
  return { input_tokens: prompt_tokens, output_tokens: completion_tokens, total_tokens };
}

/** The `data:` lines of an event stream. @param {ReadableStream<Uint8Array<ArrayBuffer>>} body */
async function* eventData(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6);
  }
}

/** Why a turn could not be run or watched to its end. */
export class LiveError extends Error {
  /** @param {string} message @param {string | null} [code] */
  constructor(message, code = null) {
    super(message);
    this.code = code;
  }
}

/**
 * @typedef {object} Run a turn that is being run or watched
 * @property {object | undefined} create the message that begins it; undefined where it is only watched
 * @property {boolean} sent
 * @property {string} responseId empty until the server has accepted it
 * @property {number} sequence of the last event
 * @property {boolean} cancelled
 * @property {(event: ProtocolEvent) => void} onEvent
 * @property {() => void} resolve
 * @property {(error: LiveError) => void} reject
 */

/** Milliseconds before each attempt to connect again: the server keeps a turn for 30 s. */
const RETRIES = [300, 1000, 2000, 4000, 8000, 12_000];

/** Milliseconds between looks at whether the connection lives while a turn runs, and how long an answer may take. */
const PING_INTERVAL = 15_000;

/** Close codes after which connecting again is of no use: what was sent is wrong, or whoever sent it may not. */
const FINAL = [1003, 1008, 1009, 4401, 4403];

/** Runs turns over the live WebSocket, one at a time. Reconnects and resumes where the connection breaks during a turn. */
export class Live {
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {Run | undefined} */
  #run;
  #attempts = 0;
  #heard = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #pings;
  #credential;
  #note;

  /** Resolves when no turn runs. @type {Promise<unknown>} */
  idle = Promise.resolve();

  /**
   * @param {() => Promise<string>} credential a token for the next connection; empty where the server is open
   * @param {Note} note
   */
  constructor(credential, note) {
    this.#credential = credential;
    this.#note = note;
  }

  /**
   * Runs a turn. Resolves after its last event.
   * @param {object} create the `response.create` message @param {(event: ProtocolEvent) => void} onEvent
   * @returns {Promise<void>} @throws {LiveError} where the server did not accept it, or the connection was lost for good
   */
  run(create, onEvent) {
    return this.#begin({ create, responseId: '', sequence: -1, onEvent });
  }

  /**
   * Watches a turn that an earlier connection began.
   * @param {string} responseId @param {(event: ProtocolEvent) => void} onEvent @returns {Promise<void>} @throws {LiveError}
   */
  resume(responseId, onEvent) {
    return this.#begin({ create: undefined, responseId, sequence: 0, onEvent });
  }

  /** Ends the turn that runs. Its last event still comes. */
  cancel() {
    const run = this.#run;
    if (!run) return;
    run.cancelled = true;
    if (!run.sent && run.responseId === '') return this.#fail(new LiveError('Stopped.', 'cancelled'));
    if (run.responseId !== '') this.#send({ type: 'response.cancel', response_id: run.responseId });
  }

  /** Closes the connection: the next turn makes a new one. */
  close() {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close(1000);
  }

  /** @param {Pick<Run, 'create' | 'responseId' | 'sequence' | 'onEvent'>} fields @returns {Promise<void>} */
  #begin(fields) {
    const { promise, resolve, reject } = Promise.withResolvers();
    this.#run = { ...fields, sent: false, cancelled: false, resolve: () => resolve(undefined), reject };
    this.#attempts = 0;
    this.idle = promise.catch(() => undefined);
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#sendRun();
    else void this.#connect();
    return promise;
  }

  async #connect() {
    /** @type {string} */
    let token;
    try {
      token = await this.#credential();
    } catch (error) {
      return this.#fail(new LiveError(/** @type {Error} */ (error).message));
    }
    if (!this.#run) return; // stopped meanwhile
    const url = new URL('v1/live', BASE);
    url.protocol = url.protocol.replace('http', 'ws');
    const protocols = token === '' ? ['responses'] : ['responses', `openai-insecure-api-key.${token}`];
    /** @type {WebSocket} */
    let socket;
    try {
      socket = new WebSocket(url, protocols);
    } catch {
      return this.#fail(new LiveError('This token has characters that a browser cannot send over a WebSocket.'));
    }
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#attempts = 0;
      this.#sendRun();
    };
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#note('in', 'close', code, { code, reason });
      if (this.#run) void this.#reconnect(code, reason, opened);
    };
  }

  /** @param {number} code @param {string} reason @param {boolean} opened whether this connection had been open */
  async #reconnect(code, reason, opened) {
    const run = /** @type {Run} */ (this.#run);
    if (code === 4401) return this.#fail(new LiveError('The token is no longer valid.', 'invalid_api_key'));
    if (FINAL.includes(code)) return this.#fail(new LiveError(`The server closed the connection: ${reason || code}.`));
    if (run.sent && run.responseId === '') {
      return this.#fail(new LiveError('The connection was lost before the server had accepted the message.', 'connection_lost'));
    }
    const wait = RETRIES[this.#attempts++];
    if (wait === undefined || (!opened && run.responseId === '')) {
      return this.#fail(new LiveError('The live connection could not be opened.', 'connection_refused'));
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (this.#run === run) await this.#connect();
  }

  /** Sends the message that begins the turn, or asks for the events that were missed. */
  #sendRun() {
    const run = this.#run;
    if (!run) return;
    this.#heard = performance.now();
    if (run.responseId !== '') {
      this.#send({ type: 'svc:response.resume', response_id: run.responseId, starting_after: Math.max(0, run.sequence) });
    } else {
      run.sent = true;
      this.#send({ type: 'response.create', ...run.create });
    }
  }

  /** @param {string} data */
  #receive(data) {
    this.#heard = performance.now();
    /** @type {ProtocolEvent} */
    const event = JSON.parse(data);
    if (event.type === 'svc:pong') return;
    this.#note('in', event.type, event.sequence_number ?? '', event);
    const run = this.#run;
    if (!run) return;
    if (event.type === 'error') return this.#refused(run, event.error);
    if (typeof event.sequence_number === 'number') run.sequence = event.sequence_number;
    if (event.type === 'response.created') {
      run.responseId = event.response.id;
      if (run.cancelled) this.#send({ type: 'response.cancel', response_id: run.responseId });
    }
    run.onEvent(event);
    if (endsTurn(event)) this.#end()?.resolve();
  }

  /** @param {Run} run @param {{ message: string, code?: string | null }} error */
  #refused(run, { message, code = null }) {
    if (code === 'websocket_connection_limit_reached' && run.responseId === '') {
      run.sent = false; // the connection is too old: a new one takes the message
      this.close();
      return void this.#connect();
    }
    this.#fail(new LiveError(message, code));
  }

  /** Browsers do not tell a page that the network is gone: an answer that does not come does. */
  #ping() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (performance.now() - this.#heard > 2 * PING_INTERVAL) return this.#socket.close(4000);
    this.#socket.send(JSON.stringify({ type: 'svc:ping', id: 'playground' }));
  }

  /** @param {{ type: string, [field: string]: unknown }} message */
  #send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#note('out', message.type, '', message);
    this.#socket.send(JSON.stringify(message));
  }

  /** @param {LiveError} error */
  #fail(error) {
    this.#end()?.reject(error);
  }

  #end() {
    const run = this.#run;
    this.#run = undefined;
    clearInterval(this.#pings);
    return run;
  }
}
