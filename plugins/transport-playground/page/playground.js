import { Address } from './address.js';
import { Api, EventLog } from './api.js';
import { COMPARED, rootOf } from './branches.js';
import { Conversation } from './conversation.js';
import { Server } from './server.js';
import { ServerWatch } from './server-watch.js';
import { Sessions } from './sessions.js';
import { TabMemory } from './tab-memory.js';
import { tabStorage } from './tab-storage.js';
import { forgetTrials } from './trial.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./sessions.js').Session} Session */

/** Where the tab remembers the chosen agent. */
const AGENT = 'plugboard.agent';

/**
 * The state of the page, and its actions. Views read the state and render again on `change`.
 *
 * 1. `start` reads the settings, the agents and the sessions, and opens the conversation in the
 *    address. If the server requires a token, everything but the settings waits for it.
 * 2. The page shows one conversation, or two side by side that receive the same messages. A running
 *    one that is left goes on, and is shown again when its reader comes back.
 * 3. What happens in a conversation is in `conversation.js`. What changes stored sessions is in
 *    `session-actions.js` and `versions.js`.
 */
export class Playground extends EventTarget {
  log = new EventLog(() => this.changed());
  api = new Api(this.log.note);
  server = new Server(this.api);
  sessions = new Sessions(this.api);
  memory = new TabMemory();
  /** What went wrong outside a conversation. */
  notice = '';
  /** Text for screen readers. */
  announcement = '';
  /** The conversations that are shown: one, or two side by side. */
  chats = [this.conversation('')];
  address = new Address(this);
  #watch = new ServerWatch(this);
  /** Conversations whose turns run, also if they are not shown. @type {Set<Conversation>} */
  #running = new Set();

  async start() {
    addEventListener('hashchange', () => void this.address.open());
    this.#watch.start();
    await this.try(async () => {
      await this.server.readSettings();
      void this.#watch.check();
      await this.enter();
    });
  }

  /** Reads the agents and sessions that the token can reach. */
  async enter() {
    const { server } = this;
    const { token } = server.settings;
    server.access = token && this.api.token === '' ? 'missing' : 'checking';
    if (server.access === 'missing') return this.changed();
    const canEnter = await this.try(async () => {
      await this.readAgents();
      server.access = token ? 'ok' : 'open';
      if (this.chat.id === '' && this.chat.draft === '') this.chat.history.restore('');
    });
    if (canEnter) await Promise.all([this.loadSessions(), this.address.open()]);
  }

  /** Reads the agents that the token can reach: a reload of the server may have changed them. */
  async readAgents() {
    await this.server.readModels();
    for (const chat of this.chats) {
      const isGone = this.server.models.every(({ id }) => id !== chat.agent);
      if (chat.turns.length === 0 && isGone) chat.agent = this.#usualAgent();
    }
    this.changed();
  }

  /** @param {string} token empty to forget it */
  async setToken(token) {
    const isOther = this.server.access === 'ok' && token !== this.api.token;
    const known = this.chat.session ?? this.sessions.list[0];
    if (token === '') this.stop();
    this.api.token = token;
    for (const chat of new Set([...this.chats, ...this.#running])) chat.close();
    this.server.models = [];
    this.sessions = new Sessions(this.api);
    if (token === '') this.#forget();
    await this.enter();
    if (!this.server.isOpen) return;
    if (token !== '' && (known ? await this.#lacks(known) : isOther)) this.#leaveProject();
    await this.reopen();
  }

  /**
   * Whether the token does not reach a session of the one before: it belongs to another project.
   * @param {Session} session
   */
  #lacks({ id }) {
    return this.sessions.get(id).then(
      () => false,
      ({ status }) => status === 404,
    );
  }

  /** Begins a new chat in another project, with what was typed. */
  #leaveProject() {
    const { draft, images, isStateless } = this.chat;
    this.#forget();
    this.chat.agent = this.#usualAgent();
    this.chat.isStateless = isStateless;
    this.chat.setDraft(draft);
    if (images.length > 0) this.chat.setImages(images);
  }

  /** The tab keeps nothing that the token before could see. */
  #forget() {
    this.memory.end();
    this.memory = new TabMemory();
    forgetTrials();
    this.log.clear();
    this.#running.clear();
    this.notice = this.announcement = '';
    this.show([this.conversation('')]);
    this.address.clear();
  }

  /** Reads what is shown again: the server was away, or the token is another one. */
  async reopen() {
    for (const chat of this.chats) await chat.history.reopen();
    await this.loadSessions();
  }

  /** The conversation that is shown, or the first of two. */
  get chat() {
    return /** @type {Conversation} */ (this.chats[0]);
  }

  /**
   * Finds the conversation that has by then the place of one that is rendered now: a click may come
   * before the page is rendered again. @param {Conversation} chat @returns {() => Conversation}
   */
  placeOf(chat) {
    const at = this.chats.indexOf(chat);
    return () => this.chats[at] ?? this.chat;
  }

  get isRunning() {
    return this.chats.some((chat) => chat.isRunning);
  }

  stop() {
    for (const chat of this.chats) chat.stop();
  }

  /** The agent that was chosen last, or the first one. */
  #usualAgent() {
    const wanted = tabStorage.get(AGENT);
    const { models } = this.server;
    return (models.find(({ id }) => id === wanted) ?? models[0])?.id ?? '';
  }

  /** @param {string} agent @param {Conversation} [chat] */
  selectAgent(agent, chat = this.chat) {
    chat.agent = agent;
    if (chat === this.chat) tabStorage.set(AGENT, agent);
    this.changed();
  }

  newChat() {
    const chats = this.chats.map((chat) => this.successor(chat));
    chats[0]?.history.restore('');
    this.show(chats);
    this.address.clear();
  }

  /** An empty conversation with the same agent. @param {Conversation} chat */
  successor({ agent, isStateless }) {
    const chat = this.conversation(agent);
    chat.isStateless = isStateless;
    return chat;
  }

  /** Shows a second conversation, which receives the same messages. */
  compare() {
    const { models } = this.server;
    const { agent } = this.chat;
    const other = models.find(({ id, isAgent }) => isAgent && id !== agent) ?? models.find(({ id }) => id !== agent);
    const chat = this.successor(this.chat);
    chat.agent = other?.id ?? agent;
    this.show([this.chat, chat]);
  }

  /** Shows one conversation alone. @param {Conversation} closed */
  closeColumn(closed) {
    const { chat: first } = this;
    this.show(this.chats.filter((chat) => chat !== closed));
    if (closed === first) this.chat.takeDraft(first); // it is for both
    this.address.write();
  }

  /** @param {boolean} isStateless @param {string} [key] of the session to begin or continue */
  setMode(isStateless, key = '') {
    const { isStateless: before, sessionKey, turns } = this.chat;
    const isOther = key !== '' && key !== sessionKey;
    if (isStateless === before && !isOther) return;
    if (turns.length > 0) this.newChat();
    this.chat.isStateless = isStateless;
    if (key !== '') this.chat.key = key;
    this.changed();
  }

  /**
   * Sends a message to the conversations that are shown. @param {string} input @param {readonly
   * string[]} [images]
   */
  async send(input, images) {
    if (this.isRunning) return;
    // a session belongs to its agent
    const chats = this.chats.map((chat) => (chat.changesAgent ? this.successor(chat) : chat));
    if (chats.some((chat) => !this.chats.includes(chat))) this.show(chats);
    const [first, ...others] = chats;
    const sent = first?.send(input, images);
    for (const other of others) {
      await first?.begun; // the session of the other one names that of the first
      if (first?.session) other.metadata = { [COMPARED]: first.session.id };
      void other.send(input, images);
    }
    await sent;
  }

  /** @param {Conversation} old @param {Conversation} chat */
  replace(old, chat) {
    this.show(this.chats.map((one) => (one === old ? chat : one)));
    this.address.write();
  }

  async moreSessions() {
    await this.try(() => this.sessions.more());
  }

  /** Whether a turn of the session runs, here or anywhere. @param {Session} session */
  isRunningIn({ id, status }) {
    const watched = this.chats.find((chat) => chat.id === id && chat.isWatched);
    return watched ? watched.isRunning : status === 'running' || this.runningWith(id) !== undefined;
  }

  /** Whether the session, or a branch of it, is shown. @param {Session} session */
  isShown(session) {
    return this.chats.some(({ session: shown }) => shown && rootOf(shown) === rootOf(session));
  }

  dismissNotice() {
    this.notice = '';
    for (const chat of this.chats) chat.notice = '';
    this.changed();
  }

  /** @param {string} agent */
  conversation(agent) {
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
      onOther: () => void this.loadSessions(),
      onConnection: () => void this.#watch.check(),
      onChange: () => this.changed(),
    });
  }

  /** @param {Conversation[]} chats */
  show(chats) {
    const left = this.chats.filter((chat) => !chats.includes(chat));
    this.chats = chats;
    for (const chat of left) if (!chat.isBusy) chat.close();
    this.changed();
  }

  /** @param {string} id */
  runningWith(id) {
    return [...this.#running].find((chat) => chat.id === id);
  }

  /** @param {Conversation} chat */
  #onBegin(chat) {
    this.#running.add(chat);
    if (this.chats.includes(chat)) this.address.write();
    void this.loadSessions();
  }

  /** @param {Conversation} chat */
  #onEnd(chat) {
    this.#running.delete(chat);
    if (!this.chats.includes(chat)) chat.close();
    if (!chat.isStateless) void this.loadSessions();
  }

  async loadSessions() {
    if (!this.server.canKeepSessions) return;
    await this.sessions.load();
    if (this.sessions.isRefused) this.server.access = 'refused'; // the token has ended
    this.changed();
  }

  /**
   * Runs an action. If it fails, shows why.
   * @param {() => Promise<unknown>} action @returns {Promise<boolean>} whether it succeeded
   */
  async try(action) {
    try {
      await action();
      return true;
    } catch (error) {
      const { message } = /** @type {ApiError} */ (error);
      if (!this.server.refuses(/** @type {ApiError} */ (error))) this.notice = message;
      return false;
    } finally {
      this.changed();
    }
  }

  changed() {
    this.dispatchEvent(new Event('change'));
  }
}
