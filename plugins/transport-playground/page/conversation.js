import { ConversationHistory } from './conversation-history.js';
import { newKey, titleOf } from './sessions.js';
import { beginTrial } from './trial.js';
import { continueTurn, decideCall, isRunning, newTurn } from './turn.js';
import { TurnWatch } from './turn-watch.js';

/** @typedef {import('./api.js').ApiError} ApiError */
/** @typedef {import('./turn.js').ToolItem} ToolItem */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./sessions.js').Session} Session */

/**
 * @typedef {object} ConversationDependencies
 * @property {import('./api.js').Api} api
 * @property {import('./api.js').EventLog} log
 * @property {import('./server.js').Server} server
 * @property {() => import('./sessions.js').Sessions} sessions
 * @property {import('./tab-memory.js').TabMemory} memory
 * @property {(text: string) => void} announce tells screen readers
 * @property {(chat: Conversation) => void} onBegin its first message is about to be sent
 * @property {(chat: Conversation) => void} onEnd a turn has ended
 * @property {() => void} onOther a turn of another tab or client has begun or ended
 * @property {() => void} onConnection a connection was lost, or is there again
 * @property {() => void} onChange
 */

const NO_ROOM = 'A reload of the page will lose the images of this message: the tab has no room for them.';

/**
 * A conversation with an agent. Its turns run one at a time, and go on while another conversation
 * is shown.
 *
 * 1. `history` opens a stored session; a new conversation has none before its first message.
 * 2. `send` runs a turn, `decide` continues the last one when all its calls are decided.
 * 3. `again` sends a message again that the session does not have.
 * 4. The tab remembers the draft and the turns that the server does not keep.
 */
export class Conversation {
  /** The agent that answers the next message. */
  agent;
  /** The agent that answered so far; empty before the first message. */
  agentOfTurns = '';
  /** The key of the session, until it exists. */
  key = newKey();
  /** @type {Session | undefined} */
  session;
  isStateless = false;
  /** @type {Turn[]} */
  turns = [];
  /** Whether the connection of the running turn was lost, and is being opened again. */
  isReconnecting = false;
  draft = '';
  /** Images of the next message, as data URLs. @type {readonly string[]} */
  images = [];
  /** What went wrong outside a turn. */
  notice = '';
  /** Metadata of the session that its first message creates. @type {Record<string, string>} */
  metadata = {};
  /** What the server and the tab have of it. */
  history;
  /** Resolves when the session of the last message that was sent exists, or cannot. */
  begun = Promise.resolve();

  #app;
  #watch;

  /** @param {string} agent @param {ConversationDependencies} app */
  constructor(agent, app) {
    this.agent = agent;
    this.#app = app;
    this.history = new ConversationHistory(this, app);
    this.#watch = new TurnWatch(this, app);
  }

  /** What the address and the tab call it; empty before its first message. */
  get id() {
    return this.session?.id ?? (this.turns.length > 0 ? this.key : '');
  }

  get isRunning() {
    return this.turns.some(isRunning);
  }

  /** Whether this tab runs or follows a turn, which goes on when the conversation is left. */
  get isBusy() {
    return this.#watch.isBusy;
  }

  /** Whether it is known at all times what runs in the session. */
  get isWatched() {
    return this.#watch.others.isWatching;
  }

  /** The key of the session; empty for stateless requests. */
  get sessionKey() {
    return this.isStateless ? '' : (this.session?.key ?? this.key);
  }

  /** Whether the next message begins a new session, because a session belongs to its agent. */
  get changesAgent() {
    return !this.isStateless && this.agentOfTurns !== '' && this.agent !== this.agentOfTurns;
  }

  /** Whether calls that wait have buttons: chat completions have no form for a decision. */
  get canDecide() {
    return this.#app.server.isLive;
  }

  /** The number of the newest turn that is shown. */
  get lastNumber() {
    return this.turns.reduce((last, { lastNumber }) => Math.max(last, lastNumber), 0);
  }

  /** @param {string} input @param {readonly string[]} [images] */
  async send(input, images = []) {
    if (this.isRunning || this.agent === '' || (input.trim() === '' && images.length === 0)) return;
    const turn = newTurn(input, { after: this.lastNumber, images: [...images] });
    if (this.id === '') {
      this.#app.memory.forget(''); // it gets an id now
      beginTrial(this);
    }
    this.agentOfTurns = this.agent;
    this.turns = [...this.turns, turn];
    this.notice = '';
    this.#app.announce(`Sent to ${this.agent}.`);
    this.#app.onChange();
    this.begun = this.isStateless ? Promise.resolve() : this.#makeSession(input);
    await this.begun;
    this.#app.onBegin(this);
    this.#watch.others.start();
    await this.#watch.run(turn);
  }

  /** @param {string} input its first message */
  async #makeSession(input) {
    if (this.session || !this.#app.server.canKeepSessions) return;
    await this.try(async () => {
      try {
        // Its own title comes with the end of the first turn, which may fail.
        const metadata = { title: titleOf(input), ...this.metadata };
        this.session = await this.#app.sessions().create({ agent: this.agent, id: this.key, metadata });
        this.#app.memory.forget(this.key); // a message that was stopped meanwhile belongs to the session
      } catch (error) {
        const { code, status } = /** @type {ApiError} */ (error);
        if (code !== 'conversation_exists' && status !== 403) throw error; // else the session continues under its key
      }
    });
  }

  /** The server no longer has the session: the next message begins it again, under its key. */
  loseSession() {
    if (!this.session) return;
    this.key = this.session.key;
    this.session = undefined;
    this.notice = 'The server no longer has this session. Your next message begins it again, without what was said here.';
    this.history.remember();
  }

  /**
   * Sends the message of a turn again that the session does not have. @param {Turn} turn @param
   * {string} input
   */
  async again(turn, input) {
    if (this.isRunning) return;
    if (turn.decisions.length > 0) return this.#continue(turn);
    this.turns = this.turns.filter((one) => one !== turn);
    await this.send(input, turn.images);
  }

  /**
   * Decides about a call that waits.
   * @param {Turn} turn @param {ToolItem} call @param {boolean} approve
   */
  async decide(turn, call, approve) {
    if (this.isRunning || turn !== this.turns.at(-1) || call.status !== 'waiting') return;
    if (decideCall(turn, call, approve)) await this.#continue(turn);
    else this.#app.onChange();
  }

  /** Sends the decisions about the calls of the last turn. @param {Turn} turn */
  async #continue(turn) {
    continueTurn(turn);
    this.notice = '';
    this.#app.onChange();
    await this.#watch.run(turn);
  }

  /**
   * Follows the turn that ran when the page was left, or when the connection was lost, and watches
   * those of other tabs and clients.
   */
  follow() {
    this.#watch.others.start();
    return this.#watch.follow();
  }

  /** Ends the turn that runs. */
  stop() {
    const turn = this.turns.find((one) => isRunning(one) && !one.isOther) ?? this.turns.find(isRunning);
    if (!turn) return;
    this.#watch.stop(turn);
    this.history.remember();
    this.#app.onChange();
  }

  /** Closes the live connection: the next turn opens one with the token of that time. */
  close() {
    this.#watch.close();
  }

  /** @param {string} draft */
  setDraft(draft) {
    this.draft = draft;
    this.history.remember();
    this.#app.onChange();
  }

  /** @param {readonly string[]} images */
  setImages(images) {
    this.images = images;
    this.notice = this.history.remember() || images.length === 0 ? '' : NO_ROOM;
    this.#app.onChange();
  }

  /** Takes the draft of another one, with its images. @param {Conversation} other */
  takeDraft(other) {
    const { draft, images } = other;
    other.setDraft('');
    other.setImages([]);
    this.setDraft(draft);
    this.setImages(images);
  }

  /** @param {string} notice */
  setNotice(notice) {
    this.notice = notice;
    this.#app.onChange();
  }

  /**
   * Runs an action. If it fails, says why.
   * @param {() => Promise<unknown>} action @returns {Promise<boolean>} whether it succeeded
   */
  async try(action) {
    try {
      await action();
      return true;
    } catch (error) {
      const { message } = /** @type {ApiError} */ (error);
      if (!this.#app.server.refuses(/** @type {ApiError} */ (error))) this.notice = message;
      return false;
    } finally {
      this.#app.onChange();
    }
  }
}
