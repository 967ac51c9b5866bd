import { ApiError } from './api.js';
import { ROOT, versionsOf } from './branches.js';
import { LOST } from './live.js';
import { newKey, titleOf } from './sessions.js';
import { applyDecisions, turnsOf, withRemembered } from './stored-turns.js';
import { beginTrial, trialOf } from './trial.js';
import {
  applyToEarlier,
  continueTurn,
  decideCall,
  denyDecided,
  endsTurn,
  endTurn,
  isRunning,
  newTurn,
  rereadTurn,
  spokenTurn,
} from './turn.js';
import { applyEvent } from './turn-events.js';
import { addFacts } from './turn-facts.js';
import { TurnRunner } from './turn-runner.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
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
 * @property {() => void} onConnection a connection was lost, or is there again
 * @property {() => void} onChange
 */

/** The end of a turn that was stopped before the server received it. */
const STOPPED = { status: 'incomplete', incomplete_details: { reason: 'cancelled' } };

/**
 * A conversation with an agent. Its turns run one at a time, and go on while another conversation
 * is shown.
 *
 * 1. `open` reads a stored session; a new conversation has none before its first message.
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
  /** The oldest item shown, if the session has older ones. @type {string | undefined} */
  olderThan;
  isOpening = false;
  /** Whether the connection of the running turn was lost, and is being opened again. */
  isReconnecting = false;
  draft = '';
  /** Images of the next message, as data URLs. @type {readonly string[]} */
  images = [];
  /** What went wrong outside a turn. */
  notice = '';
  /** Metadata of the session that its first message creates. @type {Record<string, string>} */
  metadata = {};
  /** The branches of the session, itself included. @type {Session[]} */
  branches = [];

  #app;
  #runner;
  /** Turns that belong before the oldest one shown. @type {Turn[]} */
  #held = [];

  /** @param {string} agent @param {ConversationDependencies} app */
  constructor(agent, app) {
    this.agent = agent;
    this.#app = app;
    this.#runner = new TurnRunner(app.api, app.server, app.log.note, (isLost) => this.#onConnection(isLost));
  }

  /** @param {boolean} isLost */
  #onConnection(isLost) {
    const turn = this.turns.find(isRunning);
    this.isReconnecting = isLost && turn !== undefined;
    if (turn) turn.version++;
    this.#app.onConnection();
    this.#app.onChange();
  }

  /** What the address and the tab call it; empty before its first message. */
  get id() {
    return this.session?.id ?? (this.turns.length > 0 ? this.key : '');
  }

  get isRunning() {
    return this.turns.some(isRunning);
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

  /**
   * Reads a stored session, and follows the turn that runs in it. @param {string} id @throws
   * {ApiError}
   */
  async open(id) {
    this.isOpening = true;
    this.#app.onChange();
    try {
      const session = await this.#sessions.get(id);
      const { items, hasMore } = await this.#sessions.items(id);
      this.#show(session, items, hasMore);
    } finally {
      this.isOpening = false;
      this.#app.onChange();
    }
    void this.readFacts();
    await this.try(() => this.readBranches());
    void this.#follow();
  }

  /** The number of the newest turn that is shown. */
  get #lastNumber() {
    return this.turns.reduce((last, { lastNumber }) => Math.max(last, lastNumber), 0);
  }

  /** Whether another tab or client runs a turn of the session. */
  get isRunningElsewhere() {
    return !this.isRunning && this.session?.status === 'running';
  }

  /** Shows what another tab or client has added to the session. */
  async refresh() {
    const { session } = this;
    if (!session || this.isRunning || this.isOpening) return;
    const { status, turns } = await this.#sessions.get(session.id);
    const isNew = turns > Math.max(this.#lastNumber, session.turns) || (status === 'running') !== this.isRunningElsewhere;
    if (isNew && !this.isRunning && this.session === session) await this.open(session.id);
  }

  /** Reads the other branches of the session, if it has any. */
  async readBranches() {
    const { session } = this;
    if (!session || !(ROOT in session.metadata)) return;
    this.branches = await this.#sessions.group(session);
    for (const turn of this.turns) turn.version++;
  }

  /**
   * The versions of a turn in the branches of the session, and which one of them is shown.
   * @param {Turn} turn
   */
  versionsOf({ number, after }) {
    if (!this.session || this.branches.length === 0) return { versions: [], at: 0 };
    return versionsOf(this.branches, this.session, number || after + 1);
  }

  /**
   * Shows again what only this tab has: a conversation without a session. @param {string} id
   * @returns {boolean}
   */
  restore(id) {
    const memory = this.#app.memory.read(id);
    if (!memory) return false;
    const { draft, turns, isStateless, agent } = memory;
    for (const turn of turns) turn.startedAt = performance.now(); // the clock of the earlier page is gone
    Object.assign(this, { draft, turns, isStateless, ...(id !== '' && { key: id, agent, agentOfTurns: agent }) });
    void this.#follow();
    return true;
  }

  /** @param {Session} session @param {ProtocolEvent[]} items @param {boolean} hasMore */
  #show(session, items, hasMore) {
    const stored = turnsOf(items);
    const { draft = '', turns = [] } = this.#app.memory.read(session.id) ?? {};
    for (const turn of turns) if (session.status === 'idle' && turn.responseId === '') turn.isCut &&= isRunning(turn);
    const first = hasMore ? (stored[0]?.number ?? 0) : 0;
    this.#held = turns.filter(({ after }) => after < first);
    this.session = session;
    this.agent = this.agentOfTurns = session.agent;
    this.isStateless = false;
    this.draft ||= draft;
    this.olderThan = hasMore ? items[0]?.id : undefined;
    this.turns = withRemembered(
      stored,
      turns.filter(({ after }) => after >= first),
    );
  }

  /** Adds the turns before those that are shown. */
  async loadOlder() {
    const { session } = this;
    if (!session) return;
    await this.try(async () => {
      const { items, hasMore } = await this.#sessions.items(session.id, this.olderThan);
      this.olderThan = hasMore ? items[0]?.id : undefined;
      this.turns = [...withRemembered(turnsOf(items), this.#held), ...this.turns];
      this.#held = [];
    });
    void this.readFacts();
  }

  /** Reads what the server keeps of the turns that are shown. */
  async readFacts() {
    const { session } = this;
    if (session && this.#app.server.canListTurns) await this.try(() => addFacts(this.#app.api, session.id, this.turns));
  }

  /** Resolves when the session of the last message that was sent exists, or cannot. */
  begun = Promise.resolve();

  /** @param {string} input @param {readonly string[]} [images] */
  async send(input, images = []) {
    if (this.isRunning || this.agent === '' || (input.trim() === '' && images.length === 0)) return;
    const after = this.#lastNumber;
    const turn = newTurn(input, { after, images: [...images] });
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
    await this.#run(turn);
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
    await this.#run(turn);
  }

  /** @param {Turn} turn the last one */
  async #run(turn) {
    await this.#runner.idle; // a stopped turn may not have ended yet
    if (!isRunning(turn)) return; // this one was stopped meanwhile
    const session = this.isStateless ? '' : (this.session?.id ?? this.key);
    await this.#watch(turn, (onEvent) => this.#runner.run(this.turns, this.agentOfTurns, session, trialOf(this), onEvent));
  }

  /** Ends the turn that runs. */
  stop() {
    const turn = this.turns.find(isRunning);
    if (!turn) return;
    this.#runner.stop();
    if (turn.status === 'sending') endTurn(turn, STOPPED);
    this.remember();
    this.#app.onChange();
  }

  /** Closes the live connection: the next turn opens one with the token of that time. */
  close() {
    this.#runner.close();
  }

  /** @param {string} draft */
  setDraft(draft) {
    this.draft = draft;
    this.remember();
    this.#app.onChange();
  }

  /** @param {readonly string[]} images */
  setImages(images) {
    this.images = images;
    this.notice = '';
    this.#app.onChange();
  }

  /** @param {string} notice */
  setNotice(notice) {
    this.notice = notice;
    this.#app.onChange();
  }

  /** Writes down what the server does not have. */
  remember() {
    const { agent, draft, isStateless, session } = this;
    const isLost = (/** @type {Turn} */ turn) => !session || isStateless || !turn.isKept || isRunning(turn);
    this.#app.memory.write(this.id, { agent, draft, isStateless, turns: [...this.#held, ...this.turns.filter(isLost)] });
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
      if (code === 'invalid_api_key') this.#app.server.access = 'refused';
      if (code === 'approval_decided') denyDecided(turn);
      if (name === 'AbortError') endTurn(turn, STOPPED);
      else if (isRunning(turn)) failTurn(turn, code, message);
    }
    this.isReconnecting = false;
    if (this.session) this.session.status = 'idle';
    this.remember();
    this.#app.onChange();
    this.#app.onEnd(this);
    if (turn.isCut && turn.responseId === '') await this.reopen();
    else await this.try(() => this.#readDecisions());
  }

  /** Reads the session again, which may have the end of a turn whose connection was lost. */
  async reopen() {
    const { session } = this;
    if (session && !this.isRunning) await this.try(() => this.open(session.id));
  }

  /** @param {Turn} turn @param {ProtocolEvent} event */
  #take(turn, event) {
    applyEvent(turn, event);
    for (const one of this.turns) if (one !== turn) applyToEarlier(one, event);
    if (event.type === 'response.created') {
      this.remember();
      this.#warnOfOther(event.response.agent);
    }
    const tool = event.item?.type === 'mcp_call' ? event.item : undefined;
    if (tool && event.type === 'response.output_item.added') this.#app.announce(`Running ${tool.name}.`);
    if (endsTurn(event)) this.#app.announce(spokenTurn(turn));
    this.#app.onChange();
  }

  /**
   * The default agent answers if the chosen one is no longer there.
   * @param {string | undefined} agent who answers
   */
  #warnOfOther(agent) {
    if (agent === undefined || agent === this.agentOfTurns) return;
    this.notice = `There is no agent ${this.agentOfTurns} any more: ${agent}, the default agent, answers.`;
  }

  /** @param {string} input its first message */
  async #makeSession(input) {
    if (this.session || !this.#app.server.canKeepSessions) return;
    await this.try(async () => {
      try {
        // Its own title comes with the end of the first turn, which may fail.
        const metadata = { title: titleOf(input), ...this.metadata };
        this.session = await this.#sessions.create({ agent: this.agent, id: this.key, metadata });
      } catch (error) {
        const { code, status } = /** @type {ApiError} */ (error);
        if (code !== 'conversation_exists' && status !== 403) throw error; // else the session continues under its key
      }
    });
  }

  /** Shows what became of calls that a message has overtaken: it may have approved them. */
  async #readDecisions() {
    const { session } = this;
    const isOpen = this.turns
      .slice(0, -1)
      .some(({ items }) => items.some((item) => item.kind === 'tool' && item.status === 'denied'));
    if (!session || !isOpen) return;
    const { items } = await this.#sessions.items(session.id);
    applyDecisions(this.turns, items);
  }

  /** Follows the turn that ran when the page was left, or when the connection was lost. */
  async #follow() {
    const turn = this.turns.find((one) => isRunning(one) || (one.isCut && one.responseId !== ''));
    if (!turn) return;
    if (!isRunning(turn)) rereadTurn(turn);
    await this.#watch(turn, async (onEvent) => {
      if (turn.responseId === '') throw new ApiError(0, 'The page was left before the server accepted the message.', LOST);
      if (!this.#app.server.isLive) throw new ApiError(0, 'The page was left before the end of the turn.', LOST);
      await this.#runner.resume(turn.responseId, onEvent);
    });
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
      if (this.#app.server.refuses(/** @type {ApiError} */ (error))) return false;
      this.notice = message;
      return false;
    } finally {
      this.#app.onChange();
    }
  }

  get #sessions() {
    return this.#app.sessions();
  }
}

/** Errors after which it is not known how a turn ended. */
const UNKNOWN_ENDS = [LOST, 'invalid_api_key', 'response_not_found', 'response_events_expired'];

/**
 * Ends a turn whose last event did not arrive.
 * @param {Turn} turn @param {string | null} code @param {string} message
 */
function failTurn(turn, code, message) {
  const isGone = code === 'response_not_found' || code === 'response_events_expired';
  if (isGone) turn.responseId = '';
  const text = 'The turn was cut off: the connection was lost, and the server no longer has its events.';
  endTurn(turn, { status: 'failed', error: isGone ? { code: LOST, message: text } : { code, message } });
  turn.isCut = UNKNOWN_ENDS.includes(code ?? '');
}
