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
 * @typedef {object} SessionWatch a session whose turns are watched
 * @property {string} id
 * @property {(watched: { responses: readonly string[], turns: number }) => void} onWatched receives
 *   the ids of the responses that run when the watch begins, or begins again, and the number of
 *   stored turns
 * @property {(event: ProtocolEvent) => void} onEvent receives the events of all responses but the
 *   one that is run or followed; `stream_id` is the id of the response
 * @property {(error: { message: string, code?: string | null }) => void} onEnd called if it cannot
 *   be watched any more
 */

/**
 * Delays before each reconnect, in milliseconds. The server keeps the turn of a lost connection for
 * 30 s.
 */
const RETRIES = [300, 1000, 2000, 4000, 8000, 12_000];

/** The code of a turn whose connection was lost. */
export const LOST = 'connection_lost';

/** Time between pings, in milliseconds. */
const PING_INTERVAL = 15_000;

/** Time after which a watch begins again that the server has ended, in milliseconds. */
const WATCH_AGAIN = 1000;

/** Close codes after which a reconnect cannot help: the message or the caller was refused. */
const FINAL = [1003, 1008, 4401, 4403];

/**
 * Runs turns over the live WebSocket, one at a time, and watches the other turns of a session. If
 * the connection breaks, it reconnects, resumes the turn and watches again.
 */
export class Live {
  /** @type {WebSocket | undefined} */
  #socket;
  /** @type {Run | undefined} */
  #run;
  /** @type {SessionWatch | undefined} */
  #watch;
  #isConnecting = false;
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

  /** Watches the turns of a session, until `close`. @param {SessionWatch} watch */
  watch(watch) {
    this.#watch = watch;
    if (this.#isOpen) this.#sendWatch();
    else void this.#connect();
  }

  /** Opens the connection again at once, if it was lost. */
  reconnect() {
    if (this.#run || this.#watch) void this.#connect();
  }

  /** Ends a watched response. @param {string} responseId */
  cancelOther(responseId) {
    this.#sendCancel({ responseId });
  }

  /** Stops the running turn. Its last event follows. */
  cancel() {
    const run = this.#run;
    if (!run) return;
    run.cancelled = true;
    if (run.responseId !== '') this.#sendCancel(run);
    else if (!run.sent) this.#fail('Stopped.', 'cancelled');
  }

  /**
   * Closes the connection and ends the watch. The next turn opens a new one; one that runs goes on
   * over a new one.
   */
  close() {
    this.#watch = undefined;
    this.#renew();
  }

  #renew() {
    const socket = this.#socket;
    this.#socket = undefined;
    clearInterval(this.#pings);
    // The browser reports one that is closed before it is open.
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close(1000);
    else socket?.close(1000);
    if (socket && (this.#run || this.#watch)) void this.#connect();
  }

  get #isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** @param {Pick<Run, 'create' | 'responseId' | 'onEvent'>} fields @returns {Promise<void>} */
  #start(fields) {
    const { promise, resolve, reject } = Promise.withResolvers();
    this.#run = { ...fields, sequence: 0, sent: false, cancelled: false, resolve: () => resolve(undefined), reject };
    this.#attempts = 0;
    this.idle = promise.catch(() => undefined);
    if (this.#isOpen) this.#sendRun();
    else void this.#connect();
    return promise;
  }

  async #connect() {
    if (this.#socket || this.#isConnecting) return;
    this.#isConnecting = true;
    const url = new URL('v1/live?conversation=none', BASE);
    url.protocol = url.protocol.replace('http', 'ws');
    /** @type {WebSocket} */
    let socket;
    try {
      const token = await this.#credential();
      if (!this.#run && !this.#watch) return;
      socket = new WebSocket(url, token === '' ? ['responses'] : ['responses', `openai-insecure-api-key.${token}`]);
    } catch (error) {
      if (error instanceof ApiError && error.status !== 401) return this.#reconnect(false, 0, '');
      // the browser's own message repeats the token
      const message = error instanceof ApiError ? error.message : 'This token cannot be sent over a WebSocket.';
      return this.#refuseAll(message, 'invalid_api_key');
    } finally {
      this.#isConnecting = false;
    }
    this.#socket = socket;
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#attempts = 0;
      this.#heardAt = performance.now();
      this.#pings = setInterval(() => this.#ping(), PING_INTERVAL);
      this.#onConnection(false);
      this.#sendRun();
      this.#sendWatch();
    };
    socket.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    socket.onclose = ({ code, reason }) => {
      if (this.#socket !== socket) return;
      this.#socket = undefined;
      clearInterval(this.#pings);
      this.#note('in', 'close', code, { code, reason });
      this.#onConnection(true);
      void this.#reconnect(opened, code, reason);
    };
  }

  /**
   * Opens the connection again, for a turn as long as the server may keep it, for a watch until it
   * ends.
   * @param {boolean} opened whether the lost connection had been open
   * @param {number} code @param {string} reason
   */
  async #reconnect(opened, code, reason) {
    if (code === 4401) return this.#refuseAll('The token is no longer valid.', 'invalid_api_key');
    if (code === 1009) this.#fail('The message is too large for the live connection.', 'request_too_large');
    if (FINAL.includes(code)) return this.#refuseAll(`The server closed the connection: ${reason || code}.`, LOST);
    const run = this.#run;
    const wait = RETRIES[this.#attempts++];
    if (run) {
      const isKnown = run.responseId !== '';
      if (run.sent && !isKnown) this.#fail('The connection was lost before the server accepted the message.', LOST);
      else if (wait === undefined || !(opened || isKnown))
        this.#fail(isKnown ? 'The connection was lost.' : 'The live connection cannot be opened.', LOST);
    }
    await new Promise((resolve) => setTimeout(resolve, wait ?? RETRIES.at(-1)));
    if (this.#run || this.#watch) await this.#connect();
  }

  /** @param {string} message @param {string} code */
  #refuseAll(message, code) {
    const watch = this.#watch;
    this.#watch = undefined;
    this.#fail(message, code);
    watch?.onEnd({ message, code });
  }

  #sendWatch() {
    if (this.#watch) this.#send({ type: 'svc:conversation.watch', conversation: this.#watch.id });
  }

  /** Sends the message that starts the turn, or requests the events that were missed. */
  #sendRun() {
    const run = this.#run;
    if (!run) return;
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
    const run = this.#run;
    const { conversation, stream_id: other } = event;
    const isWatch = other !== undefined || event.type === 'svc:conversation.watched' || (event.type === 'error' && conversation);
    const label = event.type === 'svc:nested' ? `${event.type} ${event.event.type}` : event.type;
    this.#note('in', label, event.sequence_number ?? '', event, isWatch ? other && { responseId: other } : run);
    if (isWatch) return this.#receiveOther(event);
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

  /** Receives an event of what is watched. @param {ProtocolEvent} event */
  #receiveOther(event) {
    const watch = this.#watch;
    const { type, stream_id: id, conversation } = event;
    if (!watch || (id === undefined && conversation !== watch.id)) return;
    if (type === 'svc:conversation.watched') watch.onWatched({ responses: event.responses, turns: event.turns });
    else if (type !== 'error') {
      if (id !== this.#run?.responseId) watch.onEvent(event);
    } else if (event.status === 503) setTimeout(() => this.#sendWatch(), WATCH_AGAIN);
    else {
      this.#watch = undefined;
      watch.onEnd(event.error);
    }
  }

  /** @param {Run} run @param {{ message: string, code?: string }} error */
  #refuse(run, { message, code }) {
    if (code !== 'websocket_connection_limit_reached' || run.responseId !== '') return this.#fail(message, code);
    run.sent = false; // the connection is too old for new turns: send the message over a new one
    this.#renew();
  }

  /** Detects a dead connection, which browsers do not report. */
  #ping() {
    if (!this.#isOpen) return;
    if (performance.now() - this.#heardAt > 2 * PING_INTERVAL) this.#socket?.close(4000);
    else this.#socket?.send('{"type":"svc:ping","id":"1"}');
  }

  /** @param {Pick<Run, 'responseId'>} run */
  #sendCancel({ responseId }) {
    this.#send({ type: 'response.cancel', response_id: responseId });
  }

  /** @param {{ type: string, [field: string]: unknown }} message */
  #send(message) {
    if (!this.#isOpen) return;
    this.#note('out', message.type, '', message, this.#run);
    this.#socket?.send(JSON.stringify(message));
  }

  /** @param {string} message @param {string} [code] */
  #fail(message, code) {
    this.#end()?.reject(new ApiError(0, message, code));
  }

  #end() {
    const run = this.#run;
    this.#run = undefined;
    return run;
  }
}
