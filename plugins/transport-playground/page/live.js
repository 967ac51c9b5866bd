import { ApiError, BASE } from './api.js';
import { endsTurn } from './turn.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */

/**
 * @typedef {object} Run a turn that is run or followed
 * @property {object | undefined} create the message that starts it; undefined if it is only
 *   followed
 * @property {boolean} sent
 * @property {string} responseId empty until the server has accepted the message
 * @property {number} sequence of the last event
 * @property {boolean} cancelled
 * @property {(event: ProtocolEvent) => void} onEvent
 * @property {() => void} resolve
 * @property {(error: ApiError) => void} reject
 */

/**
 * Delays before each reconnect, in milliseconds. The server keeps the turn of a lost connection for
 * 30 s.
 */
const RETRIES = [300, 1000, 2000, 4000, 8000, 12_000];

/** The code of a turn whose connection was lost. */
export const LOST = 'connection_lost';

/** Time between pings while a turn runs, in milliseconds. */
const PING_INTERVAL = 15_000;

/** Close codes after which a reconnect cannot help: the message or the caller was refused. */
const FINAL = [1003, 1008, 1009, 4401, 4403];

/**
 * Runs turns over the live WebSocket, one at a time. If the connection breaks, it reconnects and
 * resumes the turn.
 */
export class Live {
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {Run | undefined} */
  #run;
  #attempts = 0;
  #heardAt = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #pings;
  #credential;
  #note;

  #onConnection;

  /** Resolves when no turn runs. @type {Promise<unknown>} */
  idle = Promise.resolve();

  /**
   * @param {() => Promise<string>} credential returns a token for the next connection; empty if the
   *   server is open
   * @param {import('./api.js').Note} note
   * @param {(isLost: boolean) => void} onConnection called when the connection is lost, and when it
   *   is there again
   */
  constructor(credential, note, onConnection) {
    this.#credential = credential;
    this.#note = note;
    this.#onConnection = onConnection;
  }

  /**
   * Runs a turn. Resolves after its last event.
   * @param {object} create the `response.create` message @param {(event: ProtocolEvent) => void}
   *   onEvent
   * @throws {ApiError} if the server does not accept the message, or the connection is lost for
   *   good
   */
  run(create, onEvent) {
    return this.#start({ create, responseId: '', onEvent });
  }

  /**
   * Follows a turn that another connection started.
   * @param {string} responseId @param {(event: ProtocolEvent) => void} onEvent @throws {ApiError}
   *   if it cannot be resumed
   */
  resume(responseId, onEvent) {
    return this.#start({ create: undefined, responseId, onEvent });
  }

  /** Stops the running turn. Its last event follows. */
  cancel() {
    const run = this.#run;
    if (!run) return;
    run.cancelled = true;
    if (run.responseId !== '') this.#sendCancel(run);
    else if (!run.sent) this.#fail('Stopped.', 'cancelled');
  }

  /** Closes the connection. The next turn opens a new one; one that runs goes on over a new one. */
  close() {
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close(1000);
    if (this.#run && socket) void this.#connect();
  }

  /** @param {Pick<Run, 'create' | 'responseId' | 'onEvent'>} fields @returns {Promise<void>} */
  #start(fields) {
    const { promise, resolve, reject } = Promise.withResolvers();
    this.#run = { ...fields, sequence: 0, sent: false, cancelled: false, resolve: () => resolve(undefined), reject };
    this.#attempts = 0;
    this.idle = promise.catch(() => undefined);
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL);
    if (this.#socket?.readyState === WebSocket.OPEN) this.#sendRun();
    else if (!this.#socket) void this.#connect();
    return promise;
  }

  async #connect() {
    const url = new URL('v1/live?conversation=none', BASE);
    url.protocol = url.protocol.replace('http', 'ws');
    /** @type {WebSocket} */
    let socket;
    try {
      const token = await this.#credential();
      if (!this.#run) return;
      socket = new WebSocket(url, token === '' ? ['responses'] : ['responses', `openai-insecure-api-key.${token}`]);
    } catch (error) {
      const run = this.#run;
      if (!run) return;
      if (error instanceof ApiError && error.status !== 401) return this.#reconnect(run, false, 0, '');
      // the browser's own message repeats the token
      const message = error instanceof ApiError ? error.message : 'This token cannot be sent over a WebSocket.';
      return this.#fail(message, 'invalid_api_key');
    }
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#attempts = 0;
      this.#onConnection(false);
      this.#sendRun();
    };
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      this.#note('in', 'close', code, { code, reason });
      this.#onConnection(true);
      if (this.#run) void this.#reconnect(this.#run, opened, code, reason);
    };
  }

  /**
   * @param {Run} run @param {boolean} opened whether the lost connection had been open
   * @param {number} code @param {string} reason
   */
  async #reconnect(run, opened, code, reason) {
    if (code === 4401) return this.#fail('The token is no longer valid.', 'invalid_api_key');
    if (FINAL.includes(code)) return this.#fail(`The server closed the connection: ${reason || code}.`, LOST);
    const isKnown = run.responseId !== '';
    if (run.sent && !isKnown) return this.#fail('The connection was lost before the server accepted the message.', LOST);
    const wait = RETRIES[this.#attempts++];
    if (wait === undefined || !(opened || isKnown))
      return this.#fail(isKnown ? 'The connection was lost.' : 'The live connection cannot be opened.', LOST);
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (this.#run === run) await this.#connect();
  }

  /** Sends the message that starts the turn, or requests the events that were missed. */
  #sendRun() {
    const run = this.#run;
    if (!run) return;
    this.#heardAt = performance.now();
    if (run.responseId === '') {
      run.sent = true;
      this.#send({ type: 'response.create', ...run.create });
    } else {
      this.#send({ type: 'svc:response.resume', response_id: run.responseId, starting_after: run.sequence });
      if (run.cancelled) this.#sendCancel(run);
    }
  }

  /** @param {ProtocolEvent} event */
  #receive(event) {
    this.#heardAt = performance.now();
    if (event.type === 'svc:pong') return;
    this.#note('in', event.type, event.sequence_number ?? '', event, this.#run);
    const run = this.#run;
    if (!run) return;
    if (event.type === 'error') return this.#refuse(run, event.error);
    run.sequence = event.sequence_number ?? run.sequence;
    if (event.type === 'response.created') {
      run.responseId = event.response.id;
      if (run.cancelled) this.#sendCancel(run);
    }
    run.onEvent(event);
    if (endsTurn(event)) this.#end()?.resolve();
  }

  /** @param {Run} run @param {{ message: string, code?: string }} error */
  #refuse(run, { message, code }) {
    if (code !== 'websocket_connection_limit_reached' || run.responseId !== '') return this.#fail(message, code);
    run.sent = false; // the connection is too old for new turns: send the message over a new one
    this.close();
  }

  /** Detects a dead connection, which browsers do not report. */
  #ping() {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    if (performance.now() - this.#heardAt > 2 * PING_INTERVAL) this.#socket.close(4000);
    else this.#socket.send('{"type":"svc:ping","id":"1"}');
  }

  /** @param {Run} run */
  #sendCancel({ responseId }) {
    this.#send({ type: 'response.cancel', response_id: responseId });
  }

  /** @param {{ type: string, [field: string]: unknown }} message */
  #send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    this.#note('out', message.type, '', message, this.#run);
    this.#socket.send(JSON.stringify(message));
  }

  /** @param {string} message @param {string} [code] */
  #fail(message, code) {
    this.#end()?.reject(new ApiError(0, message, code));
  }

  #end() {
    const run = this.#run;
    this.#run = undefined;
    clearInterval(this.#pings);
    return run;
  }
}
