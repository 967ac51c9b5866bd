import { Api, EventLog } from './api.js';
import { Conversation } from './conversation.js';
import { Server } from './server.js';
import { addressedSession, Sessions, sessionTitle, setAddress } from './sessions.js';
import { TabMemory } from './tab-memory.js';
import { messagesOf } from './turn-messages.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./sessions.js').Session} Session */
/** @typedef {import('./turn.js').Turn} Turn */

/** Where the tab remembers the chosen agent. */
const AGENT = 'plugboard.agent';

/** Milliseconds between looks at the server's health. */
const HEALTH_INTERVAL = 20_000;

/** Milliseconds without a key before a search is sent. */
const SEARCH_DELAY = 200;

/**
 * The state of the page, and its actions. Views read the state and render again on `change`.
 *
 * 1. `start` reads the settings, the agents and the sessions, and opens the conversation in the
 *    address. If the server requires a token, everything but the settings waits for it.
 * 2. The page shows one conversation. A running one that is left goes on, and is shown
 *    again when its reader comes back.
 * 3. What happens in a conversation is in `conversation.js`.
 */
export class Playground extends EventTarget {
  log = new EventLog(() => this.#changed());
  api = new Api(this.log.note);
  server = new Server(this.api);
  sessions = new Sessions(this.api);
  memory = new TabMemory();
  /** What went wrong outside a conversation. */
  notice = '';
  /** Text for screen readers. */
  announcement = '';
  /** The conversation that is shown. */
  chat = this.#conversation('');
  /** Conversations whose turns run, also if they are not shown. @type {Set<Conversation>} */
  #running = new Set();

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #search;

  async start() {
    addEventListener('hashchange', () => void this.#openAddress());
    document.addEventListener('visibilitychange', () => void this.#look());
    setInterval(() => void this.#look(), HEALTH_INTERVAL);
    await this.#try(async () => {
      await this.server.readSettings();
      void this.#look();
      await this.enter();
    });
  }

  /** Reads the agents and sessions that the token can reach. */
  async enter() {
    const { server, chat } = this;
    const { token } = server.settings;
    server.access = token && this.api.token === '' ? 'missing' : 'checking';
    if (server.access === 'missing') return this.#changed();
    const canEnter = await this.#try(async () => {
      await server.readModels();
      server.access = token ? 'ok' : 'open';
      chat.agent ||= this.#usualAgent();
      chat.restore('');
    });
    if (canEnter) await Promise.all([this.#loadSessions(), this.#openAddress()]);
  }

  /** @param {string} token empty to forget it */
  async setToken(token) {
    this.chat.stop();
    this.chat.close();
    this.api.token = token;
    this.server.models = [];
    this.sessions = new Sessions(this.api);
    if (token === '') this.memory.clear();
    this.#show(this.#conversation(''));
    await this.enter();
  }

  /** The agent that was chosen last, or the first one. */
  #usualAgent() {
    const wanted = sessionStorage.getItem(AGENT);
    const { models } = this.server;
    return (models.find(({ id }) => id === wanted) ?? models[0])?.id ?? '';
  }

  /** @param {string} agent */
  selectAgent(agent) {
    this.chat.agent = agent;
    sessionStorage.setItem(AGENT, agent);
    this.#changed();
  }

  newChat() {
    const { agent, isStateless } = this.chat;
    const chat = this.#conversation(agent);
    chat.restore('');
    chat.isStateless = isStateless;
    this.#show(chat);
    setAddress('');
  }

  /** @param {boolean} isStateless @param {string} [key] of the session to begin or continue */
  setMode(isStateless, key = '') {
    const { isStateless: before, sessionKey, turns } = this.chat;
    const isOther = key !== '' && key !== sessionKey;
    if (isStateless === before && !isOther) return;
    if (turns.length > 0) this.newChat();
    this.chat.isStateless = isStateless;
    if (key !== '') this.chat.key = key;
    this.#changed();
  }

  /** @param {string} input */
  async send(input) {
    if (this.chat.changesAgent) this.newChat(); // a session belongs to its agent
    await this.chat.send(input);
  }

  /**
   * Sends a message again, perhaps changed. A session that has it is forked before it, so that the
   * first answer is kept.
   * @param {Turn} turn @param {string} [input]
   */
  async again(turn, input = turn.input) {
    const { chat } = this;
    const { session } = chat;
    if (chat.isRunning) return;
    if (!session || !turn.isKept || turn.decisions.length > 0) return chat.again(turn, input);
    if (await this.#try(() => this.#forkBefore(turn, session))) await this.chat.send(input);
  }

  /**
   * Opens a copy of a session that ends before a turn.
   * @param {Turn} turn @param {Session} session
   */
  async #forkBefore(turn, session) {
    const { turns } = this.chat;
    const later = turns.slice(turns.indexOf(turn)).filter(({ isKept, input }) => isKept && input !== '');
    const message = await this.sessions.messageFromEnd(session.id, later.length);
    await this.open(await this.sessions.fork(session, message)); // without the turn that a message begins
  }

  /** @param {Session} session */
  async open(session) {
    setAddress(session.id);
    await this.#openAddress();
  }

  /** @param {Partial<import('./sessions.js').SessionFilter>} change */
  filterSessions(change) {
    Object.assign(this.sessions.filter, change);
    clearTimeout(this.#search);
    this.#search = setTimeout(() => void this.#loadSessions(), SEARCH_DELAY);
    this.#changed();
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
    if (!(await this.#try(() => this.sessions.remove(session)))) return;
    this.memory.forget(session.id);
    if (this.chat.session?.id === session.id) this.newChat();
  }

  /** Whether a turn of the session runs, here or anywhere. @param {Session} session */
  isRunning({ id, status }) {
    return status === 'running' || [...this.#running].some((chat) => chat.id === id);
  }

  /**
   * The request that the snippets show: the draft, or else the last message. @param {string} draft
   */
  requestOf(draft) {
    const { agent, turns, isStateless, sessionKey: key } = this.chat;
    const last = turns.at(-1);
    const isNew = draft.trim() !== '' || !last;
    const input = isNew ? draft.trim() || 'Hello' : last.input;
    const earlier = isNew ? turns : turns.slice(0, -1);
    const message = { role: 'user', content: input };
    return { agent, key, messages: isStateless ? [...messagesOf(earlier), message] : [message] };
  }

  dismissNotice() {
    this.notice = this.chat.notice = '';
    this.#changed();
  }

  /** @param {string} agent */
  #conversation(agent) {
    return new Conversation(agent, {
      api: this.api,
      log: this.log,
      server: this.server,
      sessions: () => this.sessions,
      memory: this.memory,
      announce: (text) => {
        this.announcement = text;
      },
      onBegin: (chat) => this.#onBegin(chat),
      onEnd: (chat) => this.#onEnd(chat),
      onChange: () => this.#changed(),
    });
  }

  /** @param {Conversation} chat */
  #show(chat) {
    const left = this.chat;
    this.chat = chat;
    if (!left.isRunning) left.close();
    this.#changed();
  }

  /** @param {Conversation} chat */
  #onBegin(chat) {
    this.#running.add(chat);
    if (chat === this.chat) setAddress(chat.id);
  }

  /** @param {Conversation} chat */
  #onEnd(chat) {
    this.#running.delete(chat);
    if (chat !== this.chat) chat.close();
    if (!chat.isStateless) void this.#loadSessions();
  }

  async #loadSessions() {
    if (!this.server.canKeepSessions) return;
    await this.sessions.load();
    this.#changed();
  }

  /** Shows the conversation that the address names. */
  async #openAddress() {
    const id = addressedSession();
    if (id === this.chat.id || !this.server.isOpen) return;
    const running = [...this.#running].find((chat) => chat.id === id);
    const chat = running ?? this.#conversation(this.chat.agent);
    this.#show(chat);
    if (running || id === '') return;
    if (!id.startsWith('conv_') && chat.restore(id)) return;
    if (this.server.canKeepSessions && (await this.#try(() => chat.open(id)))) return;
    if (this.chat === chat) this.newChat();
  }

  async #look() {
    if (document.hidden) return;
    const { health } = this.server;
    await this.server.readHealth();
    if (health !== this.server.health) this.#changed();
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
      const { message } = /** @type {ApiError} */ (error);
      if (!this.server.refuses(/** @type {ApiError} */ (error))) this.notice = message;
      return false;
    } finally {
      this.#changed();
    }
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}
