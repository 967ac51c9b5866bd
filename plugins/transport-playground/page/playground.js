import { Api, Live, runChat } from './api.js';
import { Sessions, sessionTitle, titleOf } from './sessions.js';
import { applyEvent, endsTurn, endTurn, inputItemsOf, isRunning, messagesOf, newTurn, turnsOf } from './turn.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./sessions.js').Session} Session */
/** @typedef {{ id: string, isAgent: boolean }} Model */
/** @typedef {'checking' | 'open' | 'missing' | 'ok' | 'refused' | 'unreachable'} Access */

/**
 * @typedef {object} Settings what the server says of itself before a token is entered: `PageSettings` of the plugin
 * @property {string} title
 * @property {string} version
 * @property {string | null} docs
 * @property {string[]} suggestions
 * @property {boolean} token
 * @property {string[]} routes
 */

/**
 * @typedef {object} LogEntry
 * @property {'in' | 'out' | 'http'} direction
 * @property {string} label the type of a frame, or method and path of a request
 * @property {string} note the sequence number of a frame, or the status of a request
 * @property {number} at milliseconds since the page was opened
 * @property {object} data
 */

/**
 * The running turn, stored for the case that the page is reloaded.
 * @typedef {{ responseId: string, conversation: string, input: string }} Pending
 */

/** How a turn ends that its user stopped before the server knew of it. */
const STOPPED = { status: 'incomplete', incomplete_details: { reason: 'cancelled' } };

const AGENT = 'plugboard.agent';
const PENDING = 'plugboard.pending';

/** Milliseconds between looks at the server's health. */
const HEALTH_INTERVAL = 20_000;

/** Requests and events that are kept; the oldest go first. */
const LOG_LIMIT = 2000;

/**
 * The state of the page and all that can be done with it. Views read it, and render again on `change`.
 *
 * 1. `start` reads the settings, then, with a token where one is needed, agents and sessions, and opens what the address names.
 * 2. `send` runs one turn at a time, over the live surface where the server has it, else over chat completions.
 * 3. A turn that runs while the page is reloaded is watched again from where it was.
 */
export class Playground extends EventTarget {
  /** @type {import('./api.js').Note} */
  #note = (direction, label, note, data) => {
    this.log.push({ direction, label, note: String(note), at: performance.now(), data });
    if (this.log.length > LOG_LIMIT) this.log.splice(0, LOG_LIMIT / 10);
    this.#changed();
  };

  api = new Api(this.#note);
  /** All that went over the wire, for people who want to see it. @type {LogEntry[]} */
  log = [];
  sessions = new Sessions(this.api);

  /** @type {Settings} */
  settings = { title: 'Playground', version: '', docs: null, suggestions: [], token: false, routes: [] };
  /** @type {Access} */
  access = 'checking';
  /** @type {'unknown' | 'ready' | 'not-ready' | 'unreachable'} */
  health = 'unknown';
  /** @type {Model[]} */
  models = [];
  agent = '';

  /** @type {Turn[]} */
  turns = [];
  /** @type {Session | undefined} */
  session;
  /** The key of the next session, until it exists. */
  key = newKey();
  isStateless = false;
  /** The oldest item that is shown, where the session has older ones. @type {string | undefined} */
  olderThan;
  isOpening = false;
  /** What went wrong outside a turn. */
  notice = '';
  /** What is read aloud. */
  announcement = '';

  #live = new Live(() => this.#liveToken(), this.#note);
  /** @type {AbortController | undefined} */
  #chat;

  async start() {
    addEventListener('hashchange', () => void this.#openAddress());
    document.addEventListener('visibilitychange', () => void this.#look());
    setInterval(() => void this.#look(), HEALTH_INTERVAL);
    this.access = 'unreachable';
    await this.#try(async () => {
      this.settings = await this.api.get('playground/settings.json');
      void this.#look();
      await this.enter();
    });
  }

  /** Reads what the token may see, or without one what is public. */
  async enter() {
    if (this.settings.token && this.api.token === '') {
      this.access = 'missing';
      return this.#changed();
    }
    this.access = this.settings.token ? 'ok' : 'open';
    const isIn = await this.#try(async () => {
      const { data } = await this.api.get('v1/models');
      this.models = data.map((/** @type {{ id: string, owned_by: string }} */ one) => ({
        id: one.id,
        isAgent: one.owned_by === 'svc:agent',
      }));
    });
    if (!isIn) return;
    const wanted = sessionStorage.getItem(AGENT);
    this.agent = (this.models.find(({ id }) => id === wanted) ?? this.models[0])?.id ?? '';
    this.#changed();
    await Promise.all([this.#loadSessions(), this.#openAddress()]);
  }

  /** @param {string} token empty to forget it */
  async setToken(token) {
    this.stop();
    this.#live.close();
    this.api.token = token;
    this.models = [];
    this.agent = '';
    this.sessions = new Sessions(this.api);
    if (this.turns.length > 0 || this.session) this.newChat();
    await this.enter();
  }

  get isRunning() {
    const last = this.turns.at(-1);
    return last !== undefined && isRunning(last);
  }

  /** Whether tool calls show while they run. */
  get isLive() {
    return this.#has('/v1/live');
  }

  get canKeepSessions() {
    return this.#has('/v1/conversations');
  }

  /** The key under which the server keeps this conversation; empty where it keeps nothing. */
  get sessionKey() {
    return this.isStateless ? '' : (this.session?.key ?? this.key);
  }

  /** @param {string} agent */
  selectAgent(agent) {
    if (agent === this.agent) return;
    this.agent = agent;
    sessionStorage.setItem(AGENT, agent);
    if (this.turns.length > 0 || this.session) this.newChat(); // a session belongs to its agent
    this.#changed();
  }

  newChat() {
    this.stop();
    this.turns = [];
    this.session = undefined;
    this.olderThan = undefined;
    this.key = newKey();
    this.notice = '';
    setAddress('');
    this.#changed();
  }

  /** @param {boolean} isStateless @param {string} [key] of the session to begin or to go on with */
  setMode(isStateless, key) {
    const isOther = key !== undefined && key !== this.sessionKey;
    if (isStateless === this.isStateless && !isOther) return;
    if (this.turns.length > 0 && (isOther || !isStateless || this.session)) this.newChat();
    this.isStateless = isStateless;
    if (key !== undefined && key !== '') this.key = key;
    this.#changed();
  }

  /** @param {string} input */
  async send(input) {
    if (this.isRunning || this.agent === '' || input.trim() === '') return;
    const before = this.turns;
    const turn = newTurn(input);
    this.turns = [...before, turn];
    this.notice = '';
    this.announcement = `Sent to ${this.agent}.`;
    this.#changed();
    if (!this.isStateless) await this.#makeSession(input);
    await this.#live.idle; // a stopped turn may not have ended yet
    if (!isRunning(turn)) return; // this one was stopped meanwhile
    await this.#run(turn, before);
    if (!this.isStateless) await this.#loadSessions();
  }

  /** Ends the turn that runs. */
  stop() {
    const turn = this.turns.at(-1);
    if (!turn || !isRunning(turn)) return;
    this.#live.cancel();
    this.#chat?.abort();
    if (turn.status === 'sending') endTurn(turn, STOPPED);
    this.#changed();
  }

  /** Sends the last message once more: in a session from before that message, in a copy, so that nothing is lost. */
  async retry() {
    const last = this.turns.at(-1);
    if (!last || this.isRunning) return;
    const input = last.input;
    const { session } = this;
    if (!session || last.status !== 'completed') this.turns = this.turns.slice(0, -1);
    else if (!(await this.#try(() => this.#forkBeforeLast(session)))) return;
    await this.send(input);
  }

  /** @param {Session} session */
  async open(session) {
    setAddress(session.id);
    await this.#openAddress();
  }

  /** The turns before those that are shown. */
  async loadOlder() {
    const { session } = this;
    if (session) await this.#try(() => this.#addOlder(session.id, this.olderThan));
  }

  async moreSessions() {
    await this.#try(() => this.sessions.more());
  }

  /** @param {Session} session @param {string} title */
  async rename(session, title) {
    await this.#try(() => this.sessions.rename(session, title));
  }

  /** Copies a session and opens the copy. @param {Session} session */
  async fork(session) {
    await this.#try(async () => {
      const copy = await this.sessions.fork(session);
      await this.sessions.rename(copy, `${sessionTitle(session)} (copy)`);
      await this.open(copy);
    });
  }

  /** @param {Session} session */
  async remove(session) {
    if ((await this.#try(() => this.sessions.remove(session))) && this.session?.id === session.id) this.newChat();
  }

  clearLog() {
    this.log = [];
    this.#changed();
  }

  /** The last message, and what is sent with it, for the snippets. @param {string} draft */
  requestOf(draft) {
    const last = this.turns.at(-1);
    const isNew = draft.trim() !== '' || !last;
    const input = isNew ? draft.trim() || 'Hello' : last.input;
    const earlier = isNew ? this.turns : this.turns.slice(0, -1);
    const message = { role: 'user', content: input };
    return {
      agent: this.agent,
      key: this.sessionKey,
      messages: this.isStateless ? [...messagesOf(earlier), message] : [message],
    };
  }

  /** @param {string} path */
  #has(path) {
    return this.settings.routes.includes(path);
  }

  /** @param {Turn} turn @param {Turn[]} before the turns that a stateless request repeats */
  #run(turn, before) {
    const { agent: model, isStateless } = this;
    const session = this.session?.id ?? this.key;
    if (this.isLive) {
      const input = isStateless ? inputItemsOf([...before, turn]) : turn.input;
      const create = {
        model,
        reasoning: { summary: 'auto' },
        input,
        ...(isStateless ? { store: false } : { conversation: session }),
      };
      return this.#watch(turn, (onEvent) => this.#live.run(create, onEvent));
    }
    const chat = new AbortController();
    this.#chat = chat;
    const messages = messagesOf(isStateless ? [...before, turn] : [turn]);
    const request = { model, messages, ...(!isStateless && { session_id: session }) };
    return this.#watch(turn, (onEvent) => runChat(this.api, request, onEvent, chat.signal));
  }

  /**
   * Runs or follows a turn to its end.
   * @param {Turn} turn @param {(onEvent: (event: ProtocolEvent) => void) => Promise<void>} run
   */
  async #watch(turn, run) {
    try {
      await run((event) => this.#take(turn, event));
    } catch (error) {
      const { name, message, code } = /** @type {ApiError} */ (error);
      if (code === 'invalid_api_key') this.access = 'refused';
      if (name === 'AbortError') endTurn(turn, STOPPED);
      else if (isRunning(turn)) endTurn(turn, { status: 'failed', error: { code, message } });
    }
    sessionStorage.removeItem(PENDING);
    this.#changed();
  }

  /** @param {Turn} turn @param {ProtocolEvent} event */
  #take(turn, event) {
    applyEvent(turn, event);
    if (!this.turns.includes(turn)) return; // another conversation is open by now
    if (event.type === 'response.created' && this.session) {
      /** @type {Pending} */
      const pending = { responseId: turn.responseId, conversation: this.session.id, input: turn.input };
      sessionStorage.setItem(PENDING, JSON.stringify(pending));
    }
    const tool = event.item?.type === 'mcp_call' ? event.item : undefined;
    if (tool && event.type === 'response.output_item.added') this.announcement = `Running ${tool.name}.`;
    if (endsTurn(event)) this.announcement = spoken(turn);
    this.#changed();
  }

  /** @param {string} input its first message */
  async #makeSession(input) {
    if (this.session || !this.canKeepSessions) return;
    await this.#try(async () => {
      try {
        this.session = await this.sessions.create({ agent: this.agent, id: this.key, metadata: { title: titleOf(input) } });
        setAddress(this.session.id);
      } catch (error) {
        const { code, status } = /** @type {ApiError} */ (error);
        if (code !== 'conversation_exists' && status !== 403) throw error; // else the session continues under its key
      }
    });
  }

  /** @param {Session} session */
  async #forkBeforeLast(session) {
    const { items } = await this.sessions.items(session.id);
    const at = items.findLastIndex(({ type, role }) => type === 'message' && role === 'user');
    const before = items[at - 1]?.id;
    if (before === undefined) {
      this.newChat();
      return;
    }
    const kept = this.turns.slice(0, -1);
    this.session = await this.sessions.fork(session, before);
    this.turns = kept;
    setAddress(this.session.id);
  }

  async #loadSessions() {
    if (!this.canKeepSessions) return;
    await this.sessions.load();
    this.#changed();
  }

  /** Opens the session that the address names. */
  async #openAddress() {
    const id = decodeURIComponent(location.hash.slice(1));
    if (id === (this.session?.id ?? '') || (this.access !== 'ok' && this.access !== 'open')) return;
    if (id === '' || !this.canKeepSessions) return this.newChat();
    this.stop();
    this.turns = [];
    this.notice = '';
    this.isOpening = true;
    this.#changed();
    const isOpen = await this.#try(async () => {
      const session = await this.sessions.get(id);
      await this.#addOlder(id);
      this.session = session;
      this.isStateless = false;
      if (this.models.some((one) => one.id === session.agent)) this.agent = session.agent;
    });
    this.isOpening = false;
    if (isOpen && this.session) return this.#watchAgain(this.session);
    const { notice } = this;
    this.newChat();
    this.notice = notice;
  }

  /** @param {string} id of a session @param {string} [before] an item: what is older than it, or else the newest */
  async #addOlder(id, before) {
    const { items, hasMore } = await this.sessions.items(id, before);
    this.olderThan = hasMore ? items[0]?.id : undefined;
    this.turns = [...turnsOf(items), ...this.turns];
  }

  /** Goes on watching the turn that ran when the page was reloaded. @param {Session} session */
  async #watchAgain(session) {
    const text = sessionStorage.getItem(PENDING);
    /** @type {Pending | undefined} */
    const pending = text === null ? undefined : JSON.parse(text);
    sessionStorage.removeItem(PENDING);
    if (pending?.conversation !== session.id || session.status !== 'running' || !this.isLive) return;
    const turn = newTurn(pending.input, { status: 'running', responseId: pending.responseId });
    this.turns = [...this.turns, turn];
    sessionStorage.setItem(PENDING, /** @type {string} */ (text));
    this.#changed();
    await this.#watch(turn, (onEvent) => this.#live.resume(pending.responseId, onEvent));
    if (!turn.error?.code?.startsWith('response_')) return;
    this.turns = []; // the server no longer has its events: show what it has stored
    await this.#try(() => this.#addOlder(session.id));
  }

  /** A token for one connection: ephemeral if the server issues such, because proxies may log the handshake that carries it. */
  async #liveToken() {
    const { token } = this.api;
    if (token === '' || !this.settings.token) return '';
    if (!this.#has('/v1/ephemeral_tokens')) return token;
    try {
      const { value } = await this.api.post('v1/ephemeral_tokens', {});
      return value;
    } catch (error) {
      if (/** @type {ApiError} */ (error).status === 401) throw error;
      return token; // a JWT, for which the server issues none
    }
  }

  async #look() {
    if (document.hidden || !this.#has('/health')) return;
    const before = this.health;
    try {
      const { ready } = await this.api.get('health');
      this.health = ready ? 'ready' : 'not-ready';
    } catch {
      this.health = 'unreachable';
    }
    if (before !== this.health) this.#changed();
  }

  /**
   * Runs an action. If it fails, shows why.
   * @param {() => Promise<unknown>} action @returns {Promise<boolean>} whether it succeeded
   */
  async #try(action) {
    try {
      await action();
      return true;
    } catch (error) {
      const { status, message } = /** @type {ApiError} */ (error);
      if (status === 401) this.access = 'refused';
      else this.notice = message;
      if (status === 0) this.access = 'unreachable';
      return false;
    } finally {
      this.#changed();
    }
  }

  dismissNotice() {
    this.notice = '';
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

/** @param {Turn} turn what a screen reader says at its end */
function spoken(turn) {
  const text = turn.items.flatMap((item) => (item.kind === 'text' ? [item.text] : [])).join(' ');
  if (turn.status === 'failed') return `The turn failed. ${turn.error?.message ?? ''}`;
  if (turn.status === 'incomplete') return `The turn was stopped. ${text}`;
  return `Answer: ${text.slice(0, 1000)}`;
}

/** A random key, short enough to be read out. */
function newKey() {
  const digits = crypto.getRandomValues(new Uint8Array(10));
  return `play-${Array.from(digits, (digit) => '23456789abcdefghjkmnpqrstuvwxyz'[digit % 31]).join('')}`;
}

/** @param {string} id of the session in the address bar, so that a reload, a bookmark and the back button find it */
function setAddress(id) {
  const hash = id === '' ? '' : `#${encodeURIComponent(id)}`;
  if (location.hash !== hash) history.pushState(null, '', location.pathname + location.search + hash);
}
