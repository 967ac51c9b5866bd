import { Api, EventLog } from './api.js';
import { branchMetadata, COMPARED, ROOT, rootOf } from './branches.js';
import { Conversation } from './conversation.js';
import { Server } from './server.js';
import { addressedSessions, Sessions, sessionTitle, setAddress } from './sessions.js';
import { TabMemory } from './tab-memory.js';
import { changeTrial, trialOf } from './trial.js';
import { isAsked } from './turn.js';
import { messagesOf } from './turn-messages.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./sessions.js').Session} Session */
/** @typedef {import('./turn.js').Turn} Turn */

/** Where the tab remembers the chosen agent. */
const AGENT = 'plugboard.agent';

/** Milliseconds between looks at the server. */
const LOOK_INTERVAL = 1500;

/** Looks after which the sessions are read again, which other tabs and clients may have changed. */
const LOOKS = 3;

/** Milliseconds without a key before a search is sent. */
const SEARCH_DELAY = 200;

/**
 * The state of the page, and its actions. Views read the state and render again on `change`.
 *
 * 1. `start` reads the settings, the agents and the sessions, and opens the conversation in the
 *    address. If the server requires a token, everything but the settings waits for it.
 * 2. The page shows one conversation, or two side by side that receive the same messages. A running
 *    one that is left goes on, and is shown again when its reader comes back.
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
  /** The conversations that are shown: one, or two side by side. */
  chats = [this.#conversation('')];
  #looks = 0;
  #isLooking = false;
  /** Conversations whose turns run, also if they are not shown. @type {Set<Conversation>} */
  #running = new Set();

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #search;

  async start() {
    addEventListener('hashchange', () => void this.#openAddress());
    document.addEventListener('visibilitychange', () => void this.#look());
    setInterval(() => void this.#look(), LOOK_INTERVAL);
    await this.#try(async () => {
      await this.server.readSettings();
      void this.#look();
      await this.enter();
    });
  }

  /** Reads the agents and sessions that the token can reach. */
  async enter() {
    const { server, chats } = this;
    const { token } = server.settings;
    server.access = token && this.api.token === '' ? 'missing' : 'checking';
    if (server.access === 'missing') return this.#changed();
    const canEnter = await this.#try(async () => {
      await server.readModels();
      server.access = token ? 'ok' : 'open';
      for (const chat of chats) {
        if (chat.turns.length === 0 && server.models.every(({ id }) => id !== chat.agent)) chat.agent = this.#usualAgent();
      }
      if (this.chat.id === '' && this.chat.draft === '') this.chat.history.restore('');
    });
    if (canEnter) await Promise.all([this.#loadSessions(), this.#openAddress()]);
  }

  /** @param {string} token empty to forget it */
  async setToken(token) {
    if (token === '') this.stop();
    this.api.token = token;
    for (const chat of new Set([...this.chats, ...this.#running])) chat.close();
    this.server.models = [];
    this.sessions = new Sessions(this.api);
    if (token === '') {
      this.memory.clear();
      this.#show([this.#conversation('')]);
      setAddress([]);
    }
    await this.enter();
    if (this.server.isOpen) await this.#reopen();
  }

  /** Reads what is shown again: the server was away, or the token is another one. */
  async #reopen() {
    for (const chat of this.chats) await chat.history.reopen();
    await this.#loadSessions();
  }

  /** The conversation that is shown, or the first of two. */
  get chat() {
    return /** @type {Conversation} */ (this.chats[0]);
  }

  get isRunning() {
    return this.chats.some((chat) => chat.isRunning);
  }

  stop() {
    for (const chat of this.chats) chat.stop();
  }

  /** The agent that was chosen last, or the first one. */
  #usualAgent() {
    const wanted = sessionStorage.getItem(AGENT);
    const { models } = this.server;
    return (models.find(({ id }) => id === wanted) ?? models[0])?.id ?? '';
  }

  /** @param {string} agent @param {Conversation} [chat] */
  selectAgent(agent, chat = this.chat) {
    chat.agent = agent;
    if (chat === this.chat) sessionStorage.setItem(AGENT, agent);
    this.#changed();
  }

  newChat() {
    const chats = this.chats.map((chat) => this.#successor(chat));
    chats[0]?.history.restore('');
    this.#show(chats);
    setAddress([]);
  }

  /** An empty conversation with the same agent. @param {Conversation} chat */
  #successor({ agent, isStateless }) {
    const chat = this.#conversation(agent);
    chat.isStateless = isStateless;
    return chat;
  }

  /** Shows a second conversation, which receives the same messages. */
  compare() {
    const { models } = this.server;
    const { agent } = this.chat;
    const other = models.find(({ id, isAgent }) => isAgent && id !== agent) ?? models.find(({ id }) => id !== agent);
    const chat = this.#successor(this.chat);
    chat.agent = other?.id ?? agent;
    this.#show([this.chat, chat]);
  }

  /** Shows one conversation alone. @param {Conversation} closed */
  closeColumn(closed) {
    this.#show(this.chats.filter((chat) => chat !== closed));
    this.#setAddress();
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

  /**
   * Sends a message to the conversations that are shown. @param {string} input @param {readonly
   * string[]} [images]
   */
  async send(input, images) {
    if (this.isRunning) return;
    // a session belongs to its agent
    const chats = this.chats.map((chat) => (chat.changesAgent ? this.#successor(chat) : chat));
    if (chats.some((chat) => !this.chats.includes(chat))) this.#show(chats);
    const [first, ...others] = chats;
    const sent = first?.send(input, images);
    for (const other of others) {
      await first?.begun; // the session of the other one names that of the first
      if (first?.session) other.metadata = { [COMPARED]: first.session.id };
      void other.send(input, images);
    }
    await sent;
  }

  /**
   * Sends a message again, perhaps changed. A session that has it is copied up to it, so that the
   * first answer is kept as another branch.
   * @param {Conversation} chat @param {Turn} turn @param {string} [input]
   */
  async again(chat, turn, input = turn.input) {
    const { session } = chat;
    if (chat.isRunning) return;
    if (!session || !turn.isKept || (turn.decisions.length > 0 && input === turn.input)) return chat.again(turn, input);
    await this.#try(async () => {
      const branch = this.#conversation(session.agent);
      await branch.history.open((await this.#branch(chat, turn, session)).id);
      changeTrial(branch, trialOf(chat));
      this.#replace(chat, branch);
      await branch.send(input, turn.images);
      await branch.history.readBranches();
    });
  }

  /**
   * Makes a copy of a session that ends before a turn.
   * @param {Conversation} chat @param {Turn} turn @param {Session} session
   */
  async #branch({ turns }, turn, session) {
    const later = turns.slice(turns.indexOf(turn)).filter((one) => one.isKept && isAsked(one));
    const message = await this.sessions.messageFromEnd(session.id, later.length);
    const copy = await this.sessions.fork(session, message); // without the turn that the message begins
    if (!(ROOT in session.metadata)) await this.sessions.note(session.id, { [ROOT]: session.id });
    return this.sessions.note(copy.id, branchMetadata(session, copy.turns + 1));
  }

  /**
   * Shows another branch in place of a conversation. @param {Conversation} chat @param {Session}
   * session
   */
  async openBranch(chat, session) {
    const running = this.#runningWith(session.id);
    const branch = running ?? this.#conversation(session.agent);
    if (running || (await this.#try(() => branch.history.open(session.id)))) this.#replace(chat, branch);
  }

  /** @param {Conversation} old @param {Conversation} chat */
  #replace(old, chat) {
    this.#show(this.chats.map((one) => (one === old ? chat : one)));
    this.#setAddress();
  }

  /** Opens a session, and the one that belongs beside it. @param {Session} session */
  async open(session) {
    const { [COMPARED]: first } = session.metadata;
    const other = this.sessions.list.find(({ metadata }) => metadata[COMPARED] === session.id);
    setAddress([first, session.id, other?.id].filter((id) => id !== undefined));
    await this.#openAddress();
  }

  /** @param {Partial<import('./sessions.js').SessionFilter>} change */
  filterSessions(change) {
    Object.assign(this.sessions.filter, change);
    clearTimeout(this.#search);
    this.#search = setTimeout(() => void this.#loadSessions(), SEARCH_DELAY);
    this.#changed();
  }

  /** @param {string} id of a conversation that only this tab has */
  async openTabChat(id) {
    setAddress([id]);
    await this.#openAddress();
  }

  async moreSessions() {
    await this.#try(() => this.sessions.more());
  }

  /** @param {Session} session @param {string} title */
  async rename(session, title) {
    await this.#try(async () => {
      for (const branch of await this.#groupOf(session)) await this.sessions.rename(branch, title);
    });
  }

  /** Copies a session and opens the copy. @param {Session} session */
  async fork(session) {
    await this.#try(async () => {
      const copy = await this.sessions.fork(session);
      await this.sessions.rename(copy, `${sessionTitle(session)} (copy)`);
      await this.open(copy);
    });
  }

  /** Deletes a session with all its branches. @param {Session} session */
  async remove(session) {
    await this.#try(async () => {
      for (const branch of await this.#groupOf(session)) {
        await this.sessions.remove(branch);
        this.memory.forget(branch.id);
      }
      if (this.chats.some(({ session: shown }) => shown && rootOf(shown) === rootOf(session))) this.newChat();
    });
  }

  /** @param {Session} session */
  async #groupOf(session) {
    return ROOT in session.metadata ? this.sessions.group(session) : [session];
  }

  /** Whether a turn of the session runs, here or anywhere. @param {Session} session */
  isRunningIn({ id, status }) {
    return status === 'running' || this.#runningWith(id) !== undefined;
  }

  /** Whether the session, or a branch of it, is shown. @param {Session} session */
  isShown(session) {
    return this.chats.some(({ session: shown }) => shown && rootOf(shown) === rootOf(session));
  }

  /**
   * The request that the snippets show: the draft, or else the last message. @param {string} draft
   */
  requestOf(draft) {
    const { agent, turns, isStateless, sessionKey: key } = this.chat;
    const last = turns.at(-1);
    const isNew = draft.trim() !== '' || !last;
    const input = isNew ? draft.trim() || 'Hello' : last.input;
    const earlier = (isNew ? turns : turns.slice(0, -1)).map((turn) => ({ ...turn, images: [] })); // they would be too long
    const message = { role: 'user', content: input };
    return { agent, key, messages: isStateless ? [...messagesOf(earlier), message] : [message] };
  }

  dismissNotice() {
    this.notice = '';
    for (const chat of this.chats) chat.notice = '';
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
      onConnection: () => void this.#look(),
      onChange: () => this.#changed(),
    });
  }

  /** @param {Conversation[]} chats */
  #show(chats) {
    const left = this.chats.filter((chat) => !chats.includes(chat));
    this.chats = chats;
    for (const chat of left) if (!chat.isRunning) chat.close();
    this.#changed();
  }

  #setAddress() {
    setAddress(this.chats.map(({ id }) => id).filter((id) => id !== ''));
  }

  /** @param {string} id */
  #runningWith(id) {
    return [...this.#running].find((chat) => chat.id === id);
  }

  /** @param {Conversation} chat */
  #onBegin(chat) {
    this.#running.add(chat);
    if (this.chats.includes(chat)) this.#setAddress();
    void this.#loadSessions();
  }

  /** @param {Conversation} chat */
  #onEnd(chat) {
    this.#running.delete(chat);
    if (!this.chats.includes(chat)) chat.close();
    if (!chat.isStateless) void this.#loadSessions();
  }

  async #loadSessions() {
    if (!this.server.canKeepSessions) return;
    await this.sessions.load();
    this.#changed();
  }

  /** Shows the conversations that the address names. */
  async #openAddress() {
    const ids = addressedSessions();
    const shown = this.chats.map(({ id }) => id).filter((id) => id !== '');
    if (ids.join() === shown.join() || !this.server.isOpen) return;
    const [id] = ids;
    if (id === undefined) return this.newChat();
    const chats = ids.slice(0, 2).map((one) => this.#runningWith(one) ?? this.#successor(this.chat));
    this.#show(chats);
    const opened = await Promise.all(chats.map((chat, at) => chat.id !== '' || this.#openStored(chat, ids[at] ?? '')));
    if (this.chats !== chats || opened.every((isOpen) => isOpen)) return;
    const open = chats.filter((_, at) => opened[at]);
    if (open.length === 0) return this.newChat();
    this.#show(open);
    this.#setAddress();
  }

  /** @param {Conversation} chat @param {string} id */
  async #openStored(chat, id) {
    if (!id.startsWith('conv_') && chat.history.restore(id)) return true;
    return this.server.canKeepSessions && this.#try(() => chat.history.open(id));
  }

  async #look() {
    if (document.hidden || this.#isLooking) return;
    this.#isLooking = true;
    const { server } = this;
    const { health } = server;
    const isBack = await server.readHealth();
    if (isBack) await this.#comeBack();
    else if (server.isOpen && server.health === 'ready' && ++this.#looks % LOOKS === 0) await this.#refresh();
    this.#isLooking = false;
    if (health !== server.health) this.#changed();
  }

  /** The server answers again. It may be another version. */
  async #comeBack() {
    const { server } = this;
    await this.#try(() => server.readSettings());
    if (server.access === 'unreachable') await this.enter();
    if (server.isOpen) await this.#reopen();
  }

  /** Shows what other tabs and clients have done. */
  async #refresh() {
    if (!this.server.canKeepSessions) return;
    await Promise.all(this.chats.map((chat) => chat.history.refresh().catch(() => undefined)));
    const { list } = this.sessions;
    const before = JSON.stringify(list);
    if (!this.sessions.hasMoreThanOnePage) await this.sessions.load();
    if (before !== JSON.stringify(this.sessions.list)) this.#changed();
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
