import { Api, EventLog } from './api.js';
import { Server } from './server.js';
import {
  addressedSession,
  forgetTurn,
  newKey,
  rememberedTurn,
  rememberTurn,
  Sessions,
  sessionTitle,
  setAddress,
  titleOf,
} from './sessions.js';
import {
  addWaiting,
  applyEvent,
  applyToEarlier,
  continueTurn,
  decideCall,
  denyDecided,
  endsTurn,
  endTurn,
  isRunning,
  messagesOf,
  newTurn,
  spokenTurn,
  turnsOf,
} from './turn.js';
import { TurnRunner } from './turn-runner.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').ToolItem} ToolItem */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./sessions.js').Session} Session */

/** The end of a turn that was stopped before the server received it. */
const STOPPED = { status: 'incomplete', incomplete_details: { reason: 'cancelled' } };

/** Where the tab remembers the chosen agent. */
const AGENT = 'plugboard.agent';

/** Milliseconds between looks at the server's health. */
const HEALTH_INTERVAL = 20_000;

/**
 * The state of the page, and its actions. Views read the state and render again on `change`.
 *
 * 1. `start` reads the settings, the agents and the sessions, and opens the session in the address.
 *    If the server requires a token, everything but the settings waits for it.
 * 2. `send` runs a turn, one at a time.
 * 3. `decide` approves or denies a call of the last turn. After the last decision the turn goes on.
 * 4. After a reload, a turn that still runs is followed from its first event.
 */
export class Playground extends EventTarget {
  log = new EventLog(() => this.#changed());
  api = new Api(this.log.note);
  server = new Server(this.api);
  sessions = new Sessions(this.api);
  agent = '';

  /** @type {Turn[]} */
  turns = [];
  /** @type {Session | undefined} */
  session;
  /** The key of the next session, until it exists. */
  key = newKey();
  isStateless = false;
  /** The oldest item shown, if the session has older ones. @type {string | undefined} */
  olderThan;
  isOpening = false;
  /** What went wrong outside a turn. */
  notice = '';
  /** Text for screen readers. */
  announcement = '';

  #runner = new TurnRunner(this.api, this.server, this.log.note);

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
    const { server } = this;
    const { token } = server.settings;
    server.access = token && this.api.token === '' ? 'missing' : 'checking';
    if (server.access === 'missing') return this.#changed();
    const canEnter = await this.#try(async () => {
      await server.readModels();
      const wanted = sessionStorage.getItem(AGENT);
      this.agent = (server.models.find(({ id }) => id === wanted) ?? server.models[0])?.id ?? '';
      server.access = token ? 'ok' : 'open';
    });
    if (canEnter) await Promise.all([this.#loadSessions(), this.#openAddress()]);
  }

  /** @param {string} token empty to forget it */
  async setToken(token) {
    this.stop();
    this.#runner.close();
    this.api.token = token;
    this.server.models = [];
    this.agent = '';
    this.sessions = new Sessions(this.api);
    if (this.turns.length > 0 || this.session) this.newChat();
    await this.enter();
  }

  get isRunning() {
    const last = this.turns.at(-1);
    return last !== undefined && isRunning(last);
  }

  /** The key of the session; empty for stateless requests. */
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

  /** @param {boolean} isStateless @param {string} [key] of the session to begin or continue */
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
    await this.#runLast(turn);
  }

  /**
   * Decides about a call that waits. @param {Turn} turn @param {ToolItem} call @param {boolean}
   * approve
   */
  async decide(turn, call, approve) {
    if (this.isRunning || turn !== this.turns.at(-1) || call.status !== 'waiting') return;
    if (decideCall(turn, call, approve)) await this.#continue(turn);
    else this.#changed();
  }

  /** Sends the decisions about the calls of the last turn. @param {Turn} turn */
  async #continue(turn) {
    continueTurn(turn);
    this.notice = '';
    this.#changed();
    await this.#runLast(turn);
  }

  /** @param {Turn} turn */
  async #runLast(turn) {
    const { turns } = this;
    await this.#runner.idle; // a stopped turn may not have ended yet
    if (!isRunning(turn)) return; // this one was stopped meanwhile
    const session = this.isStateless ? '' : (this.session?.id ?? this.key);
    await this.#watch(turn, (onEvent) => this.#runner.run(turns, this.agent, session, onEvent));
    if (!this.isStateless) await this.#loadSessions();
  }

  /** Ends the turn that runs. */
  stop() {
    const turn = this.turns.at(-1);
    if (!turn || !isRunning(turn)) return;
    this.#runner.stop();
    if (turn.status === 'sending') endTurn(turn, STOPPED);
    this.#changed();
  }

  /**
   * Sends the last message again. A session is forked before that message, so that the first
   * answer is kept.
   */
  async retry() {
    const last = this.turns.at(-1);
    if (!last || this.isRunning) return;
    if (last.status !== 'completed' && last.decisions.length > 0) return this.#continue(last);
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

  /**
   * The request that the snippets show: the draft, or else the last message. @param {string} draft
   */
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

  /**
   * Runs or follows a turn to its end.
   * @param {Turn} turn @param {(onEvent: (event: ProtocolEvent) => void) => Promise<void>} run
   */
  async #watch(turn, run) {
    try {
      await run((event) => this.#take(turn, event));
    } catch (error) {
      const { name, message, code } = /** @type {ApiError} */ (error);
      if (code === 'invalid_api_key') this.server.access = 'refused';
      if (code === 'approval_decided') denyDecided(turn);
      if (name === 'AbortError') endTurn(turn, STOPPED);
      else if (isRunning(turn)) endTurn(turn, { status: 'failed', error: { code, message } });
    }
    forgetTurn();
    this.#changed();
  }

  /** @param {Turn} turn @param {ProtocolEvent} event */
  #take(turn, event) {
    applyEvent(turn, event);
    if (!this.turns.includes(turn)) return; // another conversation is open by now
    if (event.type === 'response.created' && this.session) {
      const input = turn.decisions.length > 0 ? '' : turn.input; // the stored turns have it already
      rememberTurn({ responseId: turn.responseId, conversation: this.session.id, input });
    }
    for (const one of this.turns) if (one !== turn) applyToEarlier(one, event);
    const tool = event.item?.type === 'mcp_call' ? event.item : undefined;
    if (tool && event.type === 'response.output_item.added') this.announcement = `Running ${tool.name}.`;
    if (endsTurn(event)) this.announcement = spokenTurn(turn);
    this.#changed();
  }

  /** @param {string} input its first message */
  async #makeSession(input) {
    if (this.session || !this.server.canKeepSessions) return;
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
    if (!this.server.canKeepSessions) return;
    await this.sessions.load();
    this.#changed();
  }

  /** Opens the session that the address names. */
  async #openAddress() {
    const id = addressedSession();
    if (id === (this.session?.id ?? '') || !this.server.isOpen) return;
    if (id === '' || !this.server.canKeepSessions) return this.newChat();
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
      if (this.server.models.some((one) => one.id === session.agent)) this.agent = session.agent;
    });
    this.isOpening = false;
    if (isOpen && this.session) {
      await this.#addWaiting(this.session);
      return this.#watchAgain(this.session);
    }
    const { notice } = this;
    this.newChat();
    this.notice = notice;
  }

  /**
   * Adds earlier turns of a session.
   * @param {string} id @param {string} [before] the oldest item shown; by default the newest are
   *   added
   */
  async #addOlder(id, before) {
    const { items, hasMore } = await this.sessions.items(id, before);
    this.olderThan = hasMore ? items[0]?.id : undefined;
    this.turns = [...turnsOf(items), ...this.turns];
  }

  /** Shows the calls of a session that wait for approval. @param {Session} session */
  async #addWaiting({ id }) {
    if (!this.server.canListApprovals) return;
    await this.#try(async () => {
      const waiting = await this.sessions.approvals(id);
      const last = this.turns.at(-1);
      if (last && waiting.length > 0 && this.session?.id === id) addWaiting(last, waiting);
    });
  }

  /** Follows the turn that ran when the page was reloaded. @param {Session} session */
  async #watchAgain(session) {
    const pending = rememberedTurn();
    const isSame = pending?.conversation === session.id && session.status === 'running';
    if (!isSame || !this.server.isLive) return forgetTurn();
    const turn = newTurn(pending.input, { status: 'running', responseId: pending.responseId });
    this.turns = [...this.turns, turn];
    this.#changed();
    await this.#watch(turn, (onEvent) => this.#runner.resume(pending.responseId, onEvent));
    if (!turn.error?.code?.startsWith('response_')) return;
    this.turns = []; // the server no longer has its events: show what it has stored
    await this.#try(() => this.#addOlder(session.id));
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
      const { status, message } = /** @type {ApiError} */ (error);
      if (status === 401) this.server.access = 'refused';
      else this.notice = message;
      if (status === 0 || this.server.access === 'checking') this.server.access = 'unreachable';
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
