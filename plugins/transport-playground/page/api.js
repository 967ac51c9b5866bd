import { tabStorage } from './tab-storage.js';

/** URL of the API. It is relative to the page, so that a proxy may add a prefix to both. */
export const BASE = new URL('.', location.href);

/** A failed request. `status` is 0 if the server did not answer. */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string | null} code */
  constructor(status, message, code = null) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Requests that ask again and again whether the server is there. They are not logged. */
const PROBES = ['health', 'playground/settings.json'];

const TOKEN = 'plugboard.token';

/**
 * Sends requests with the token of this tab. The token is stored in `sessionStorage` and nowhere
 * else.
 */
export class Api {
  #note;

  /** @param {Note} note */
  constructor(note) {
    this.#note = note;
  }

  get token() {
    return tabStorage.get(TOKEN) ?? '';
  }

  set token(value) {
    if (value === '') tabStorage.delete(TOKEN);
    else tabStorage.set(TOKEN, value);
  }

  /**
   * @param {string} path below the API's base, for example `v1/models` @param {AbortSignal}
   * [signal]
   */
  async get(path, signal) {
    return jsonOf(await this.send('GET', path, undefined, signal));
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
   * Sends a request. Resolves when the head of the reply has arrived.
   * @param {string} method @param {string} path @param {object} [body] @param {AbortSignal}
   *   [signal]
   * @throws {ApiError} if the status is not 2xx
   */
  async send(method, path, body, signal) {
    /** @type {Record<string, string>} */
    const headers = {};
    if (this.token !== '') headers.authorization = `Bearer ${this.token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (/[^\x21-\x7e]/.test(this.token))
      throw new ApiError(401, 'The token has characters that no token has.', 'invalid_api_key');
    const started = performance.now();
    const done = (/** @type {number} */ status) => {
      const ms = Math.round(performance.now() - started);
      if (!PROBES.includes(path))
        this.#note('http', `${method} /${path}`, status || 'failed', { method, path, status, ms, body });
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
    return jsonOf(await this.send(method, path, body));
  }
}

/** @param {Response} reply @throws {ApiError} if something else answered in place of the server */
function jsonOf(reply) {
  return reply.json().catch(() => {
    throw new ApiError(reply.status, 'The answer is not from this server: a proxy or a login page may have sent it.');
  });
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
 * @typedef {object} LogEntry
 * @property {'in' | 'out' | 'http'} direction
 * @property {string} label the type of a frame, or method and path of a request
 * @property {string} note the sequence number of a frame, or the status of a request
 * @property {number} at milliseconds since the page was opened
 * @property {object} data
 * @property {{ responseId: string } | undefined} run the turn that a frame belongs to
 * @property {number} count how many times it happened: the last one is shown
 */

/**
 * Adds an entry to the event log.
 * @typedef {(direction: LogEntry['direction'], label: string, note: string | number, data: object,
 *   run?: LogEntry['run']) => void} Note
 */

/** Requests and events that are kept; the oldest go first. */
const LIMIT = 2000;

/** What was sent and received, for people who want to see it. */
export class EventLog {
  /** @type {LogEntry[]} */
  entries = [];
  #onChange;

  /** @param {() => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** @type {Note} */
  note = (direction, label, note, data, run) => {
    // a read that is repeated, such as that of the list, stays one line
    const isRead = direction === 'http' && label.startsWith('GET ');
    const before = isRead ? this.entries.findLastIndex((one) => one.label === label && one.note === String(note)) : -1;
    const count = (before < 0 ? 0 : (this.entries.splice(before, 1)[0]?.count ?? 0)) + 1;
    this.entries.push({ direction, label, note: String(note), at: performance.now(), data, run, count });
    if (this.entries.length > LIMIT) this.entries.splice(0, LIMIT / 10);
    this.#onChange();
  };

  clear() {
    this.entries = [];
    this.#onChange();
  }
}
