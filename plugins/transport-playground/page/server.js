/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {{ id: string, isAgent: boolean }} Model */
/** @typedef {'checking' | 'open' | 'missing' | 'ok' | 'refused' | 'unreachable'} Access */

/**
 * @typedef {object} Settings public settings of the server: `PageSettings` of the plugin
 * @property {string} title
 * @property {string} version
 * @property {string | null} docs
 * @property {string[]} suggestions
 * @property {boolean} token
 * @property {string[]} routes
 */

const SETTINGS = 'playground/settings.json';

/** Milliseconds after which a server that is silent counts as away. */
const PROBE_TIMEOUT = 3000;

/** The server: its settings, its health, and the agents that the token can reach. */
export class Server {
  /** @type {Settings} */
  settings = { title: 'Playground', version: '', docs: null, suggestions: [], token: false, routes: [] };
  /** @type {Access} */
  access = 'checking';
  /** @type {'unknown' | 'ready' | 'not-ready' | 'unreachable'} */
  health = 'unknown';
  /** @type {Model[]} */
  models = [];
  #api;
  /** The version of the server that sent this page. */
  #version = '';

  /** @param {import('./api.js').Api} api */
  constructor(api) {
    this.#api = api;
  }

  async readSettings() {
    this.settings = await this.#api.get(SETTINGS);
    this.#version ||= this.settings.version;
  }

  /** The version of the server, if it is another one than that of this page; else empty. */
  get newVersion() {
    const { version } = this.settings;
    return version === this.#version ? '' : version;
  }

  /** Reads the agents that the token can reach. */
  async readModels() {
    const { data } = await this.#api.get('v1/models');
    this.models = data.map((/** @type {{ id: string, owned_by: string }} */ one) => ({
      id: one.id,
      isAgent: one.owned_by === 'svc:agent',
    }));
  }

  /** @returns {Promise<boolean>} whether the server answers again after it did not */
  async readHealth() {
    const { health: before } = this;
    try {
      const { ready = true } = await this.#api.get(
        this.#has('/health') ? 'health' : SETTINGS,
        AbortSignal.timeout(PROBE_TIMEOUT),
      );
      this.health = ready ? 'ready' : 'not-ready';
    } catch {
      this.health = 'unreachable';
    }
    return before === 'unreachable' && this.health !== 'unreachable';
  }

  /**
   * Notes what a failed request says about the server.
   * @param {ApiError} error @returns {boolean} whether the token was refused
   */
  refuses({ status }) {
    if (status === 401) this.access = 'refused';
    else if (status === 0 || this.access === 'checking') this.access = 'unreachable';
    return status === 401;
  }

  /** Whether the server accepts requests of this page. */
  get isOpen() {
    return this.access === 'ok' || this.access === 'open';
  }

  get needsToken() {
    return this.access === 'missing' || this.access === 'refused';
  }

  /** Whether tool calls show while they run. */
  get isLive() {
    return this.#has('/v1/live');
  }

  /** Whether the Responses API is there over HTTP. */
  get hasResponses() {
    return this.#has('/v1/responses');
  }

  get canKeepSessions() {
    return this.#has('/v1/conversations');
  }

  get hasAgentCards() {
    return this.#has('/v1/agents/:name');
  }

  /** Whether the server keeps what happened in a turn. */
  get canListTurns() {
    return this.#has('/v1/conversations/:id/turns');
  }

  /**
   * A token for one connection. It is ephemeral if the server issues those: proxies may log the
   * handshake, which contains it.
   */
  async liveToken() {
    const { token } = this.#api;
    if (token === '' || !this.settings.token) return '';
    if (!this.#has('/v1/ephemeral_tokens')) return token;
    try {
      const { value } = await this.#api.post('v1/ephemeral_tokens', {});
      return value;
    } catch (error) {
      if (/** @type {ApiError} */ (error).status === 401) throw error;
      return token; // the server issues none for a JWT
    }
  }

  /** @param {string} path */
  #has(path) {
    return this.settings.routes.includes(path);
  }
}
