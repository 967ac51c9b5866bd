import { ROOT, versionsOf } from './branches.js';
import { applyDecisions, turnsOf, withRemembered } from './stored-turns.js';
import { isRunning } from './turn.js';
import { addFacts } from './turn-facts.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./sessions.js').Session} Session */

/**
 * What the server and the tab have of a conversation.
 *
 * 1. `open` reads a stored session, and `loadOlder` the turns before those that it shows.
 * 2. `remember` writes down what the server does not have; `open` and `restore` show it again.
 */
export class ConversationHistory {
  /** The oldest item shown, if the session has older ones. @type {string | undefined} */
  olderThan;
  isOpening = false;
  /** The branches of the session, itself included. @type {Session[]} */
  branches = [];

  #chat;
  #app;
  /** Turns that belong before the oldest one shown. @type {Turn[]} */
  #held = [];

  /**
   * @param {import('./conversation.js').Conversation} chat
   * @param {import('./conversation.js').ConversationDependencies} app
   */
  constructor(chat, app) {
    this.#chat = chat;
    this.#app = app;
  }

  /**
   * Reads a stored session, and follows the turn that runs in it. @param {string} id @throws
   * {ApiError}
   */
  async open(id) {
    const chat = this.#chat;
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
    await chat.try(() => this.readBranches());
    void chat.follow();
  }

  /** @param {Session} session @param {ProtocolEvent[]} items @param {boolean} hasMore */
  #show(session, items, hasMore) {
    const chat = this.#chat;
    const stored = turnsOf(items);
    const { draft = '', images = [], turns = [] } = this.#app.memory.read(session.id) ?? {};
    const first = hasMore ? (stored[0]?.number ?? 0) : 0;
    this.#held = turns.filter(({ after }) => after < first);
    chat.session = session;
    chat.agent = chat.agentOfTurns = session.agent;
    chat.isStateless = false;
    chat.draft ||= draft;
    if (chat.images.length === 0) chat.images = images;
    this.olderThan = hasMore ? items[0]?.id : undefined;
    const remembered = turns.filter(({ after }) => after >= first);
    const last = stored.at(-1)?.lastNumber ?? 0;
    // of other tabs and clients, begun or ended since the session was read
    const later = chat.turns.filter((turn) => (turn.isOther && isRunning(turn)) || (turn.isKept && turn.number > last));
    const earlier = stored.filter(({ number }) => later.every((turn) => turn.number !== number));
    chat.turns = [...withRemembered(earlier, remembered), ...later];
    // what the session lacks now will not arrive any more
    for (const turn of turns) if (session.status === 'idle' && turn.responseId === '') turn.isCut &&= isRunning(turn);
  }

  /** Reads the session again, which may have the end of a turn whose connection was lost. */
  async reopen() {
    const { session, isRunning } = this.#chat;
    if (session && !isRunning) await this.#chat.try(() => this.open(session.id));
  }

  /** Adds the turns before those that are shown. */
  async loadOlder() {
    const chat = this.#chat;
    const { session } = chat;
    if (!session) return;
    await chat.try(async () => {
      const { items, hasMore } = await this.#sessions.items(session.id, this.olderThan);
      this.olderThan = hasMore ? items[0]?.id : undefined;
      chat.turns = [...withRemembered(turnsOf(items), this.#held), ...chat.turns];
      this.#held = [];
    });
    void this.readFacts();
  }

  /** Reads what the server keeps of the turns that are shown. */
  async readFacts() {
    const { session, turns } = this.#chat;
    if (session && this.#app.server.canListTurns) await this.#chat.try(() => addFacts(this.#app.api, session.id, turns));
  }

  /** Reads the other branches of the session, if it has any. */
  async readBranches() {
    const { session } = this.#chat;
    if (!session || !(ROOT in session.metadata)) return;
    this.branches = await this.#sessions.group(session);
    for (const turn of this.#chat.turns) turn.version++;
  }

  /**
   * The versions of a turn in the branches of the session, and which one of them is shown.
   * @param {Turn} turn
   */
  versionsOf({ number, after }) {
    const { session } = this.#chat;
    if (!session || this.branches.length === 0) return { versions: [], at: 0 };
    return versionsOf(this.branches, session, number || after + 1);
  }

  /**
   * Shows what became of calls that a message has overtaken, which may have approved them, and of
   * those that were approved now and did not run: that may have been too late.
   */
  async readDecisions() {
    const { session, turns } = this.#chat;
    const has = (/** @type {Turn} */ { items }, /** @type {string} */ status) =>
      items.some((item) => item.kind === 'tool' && item.status === status);
    const isOpen = turns.some((turn, at) => has(turn, at < turns.length - 1 ? 'denied' : 'approved'));
    if (!session || !isOpen) return;
    const { items } = await this.#sessions.items(session.id);
    applyDecisions(turns, items);
  }

  /**
   * Shows again what only this tab has: a conversation without a session. @param {string} id
   * @returns {boolean}
   */
  restore(id) {
    const chat = this.#chat;
    const memory = this.#app.memory.read(id);
    if (!memory) return false;
    const { draft, images, turns, isStateless, agent } = memory;
    for (const turn of turns) turn.startedAt = performance.now(); // the clock of the earlier page is gone
    Object.assign(chat, { draft, images, turns, isStateless, ...(id !== '' && { key: id, agent, agentOfTurns: agent }) });
    void chat.follow();
    return true;
  }

  /** Writes down what the server does not have. @returns {boolean} whether there was room for it */
  remember() {
    const { id, agent, draft, images, isStateless, session, turns } = this.#chat;
    const isLost = (/** @type {Turn} */ turn) => !turn.isOther && (!session || isStateless || !turn.isKept || isRunning(turn));
    return this.#app.memory.write(id, { agent, draft, images, isStateless, turns: [...this.#held, ...turns.filter(isLost)] });
  }

  get #sessions() {
    return this.#app.sessions();
  }
}
