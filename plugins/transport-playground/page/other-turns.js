import { failTurn } from './cut-turn.js';
import { LOST } from './live.js';
import { applyDecisions } from './stored-turns.js';
import { applyToEarlier, continueTurn, endsTurn, newTurn, rereadTurn, spokenTurn } from './turn.js';
import { applyEvent } from './turn-events.js';
import { textOf } from './turn-items.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */

/** Shows the turns that other tabs and clients run in the session of a conversation. */
export class OtherTurns {
  #chat;
  #app;
  #runner;
  /** The id of the session that is watched; empty while none is. */
  #session = '';
  /** Turns that run, by the ids of their responses. @type {Map<string, Turn>} */
  #running = new Map();
  /**
   * First events of responses, until it is known what was asked. @type {Map<string,
   * ProtocolEvent[]>}
   */
  #begun = new Map();

  /**
   * @param {import('./conversation.js').Conversation} chat
   * @param {import('./conversation.js').ConversationDependencies} app
   * @param {import('./turn-runner.js').TurnRunner} runner
   */
  constructor(chat, app, runner) {
    this.#chat = chat;
    this.#app = app;
    this.#runner = runner;
  }

  /** Whether it is known what runs in the session. */
  get isWatching() {
    return this.#session !== '';
  }

  /** Watches the session, if it exists, or checks again whether the server is there. */
  start() {
    const { session } = this.#chat;
    if (!session || !this.#app.server.isLive) return;
    if (this.#session === session.id) return this.#runner.reconnect();
    this.#session = session.id;
    this.#runner.watch({
      id: session.id,
      onWatched: (watched) => this.#onWatched(watched),
      onEvent: (event) => this.#receive(event),
      onEnd: (error) => this.#onEnd(error),
    });
  }

  /** The connection is closed. */
  stop() {
    this.#session = '';
    this.#begun.clear();
    this.#running.clear();
  }

  /** Ends a turn. @param {Turn} turn @returns {boolean} whether it is another client's */
  cancel(turn) {
    const isOther = [...this.#running.values()].includes(turn);
    if (isOther) this.#runner.cancelOther(turn.responseId);
    return isOther;
  }

  /**
   * The watch begins, or begins again. Turns that do not run any more have ended meanwhile, and
   * others may have begun and ended.
   * @param {{ responses: readonly string[], turns: number }} watched
   */
  #onWatched({ responses, turns }) {
    const gone = [...this.#running.keys()].filter((id) => !responses.includes(id));
    for (const id of gone) this.#cut(id, 'response_not_found', '');
    this.#chat.isReconnecting = false;
    this.#app.onChange();
    if (gone.length > 0 || turns > this.#chat.lastNumber) void this.#readAgain();
  }

  /** Reads the session, which has what ended well. */
  async #readAgain() {
    this.#chat.history.remember();
    this.#app.onOther();
    await this.#chat.history.reopen();
  }

  /** @param {{ message: string, code?: string | null }} error */
  #onEnd({ message, code }) {
    for (const id of this.#running.keys()) this.#cut(id, LOST, message);
    this.stop();
    if (code === 'invalid_api_key') this.#app.server.access = 'refused';
    else if (code === 'conversation_not_found') this.#chat.loseSession();
    else this.#chat.notice = message;
    this.#app.onChange();
  }

  /**
   * The end of a turn did not arrive. @param {string} id of its response @param {string} code
   * @param {string} message
   */
  #cut(id, code, message) {
    const turn = this.#running.get(id);
    this.#running.delete(id);
    if (!turn) return;
    turn.isOther = false;
    failTurn(turn, code, message);
    turn.responseId = ''; // it may not be one that can be resumed
  }

  /** @param {ProtocolEvent} event */
  #receive(event) {
    const { type, stream_id: id } = event;
    if (type === 'response.created') this.#begun.set(id, []);
    const first = this.#begun.get(id);
    first?.push(event);
    if (first && type === 'svc:response.input') {
      this.#begun.delete(id);
      const turn = this.#begin(id, event.input);
      for (const one of first) this.#apply(turn, one);
      this.#app.onOther();
    } else if (!first) {
      const turn = this.#running.get(id);
      if (turn) this.#apply(turn, event);
    }
  }

  /**
   * The turn of a response: a new one for a message, the last one for decisions and results.
   * @param {string} id @param {ProtocolEvent[]} input
   */
  #begin(id, input) {
    const chat = this.#chat;
    const messages = input.filter(({ role }) => role === 'user');
    const text = messages.map(({ content }) => textOf(content)).join('\n\n');
    const last = chat.turns.at(-1);
    const known = this.#running.get(id) ?? chat.turns.find((one) => one.responseId === id && !one.isKept);
    const isAgain = last?.isCut && last.input === text;
    let turn = known ?? (isAgain || messages.length === 0 ? last : undefined);
    if (known || isAgain) rereadTurn(/** @type {Turn} */ (turn));
    else if (turn) {
      continueTurn(turn);
      applyDecisions(chat.turns, input);
    } else {
      const images = messages.flatMap(({ content }) => content.filter((/** @type {ProtocolEvent} */ part) => part.image_url));
      turn = newTurn(text, { after: chat.lastNumber, images: images.map(({ image_url }) => String(image_url)) });
      chat.turns = [...chat.turns, turn];
    }
    const shown = /** @type {Turn} */ (turn);
    shown.isOther = true;
    this.#running.set(id, shown);
    return shown;
  }

  /** @param {Turn} turn @param {ProtocolEvent} event */
  #apply(turn, event) {
    const chat = this.#chat;
    applyEvent(turn, event);
    for (const one of chat.turns) if (one !== turn) applyToEarlier(one, event);
    if (endsTurn(event)) void this.#end(turn, event.stream_id);
    this.#app.onChange();
  }

  /** @param {Turn} turn @param {string} id */
  async #end(turn, id) {
    const chat = this.#chat;
    this.#running.delete(id);
    turn.isOther = false;
    this.#app.announce(spokenTurn(turn));
    chat.history.remember();
    this.#app.onOther();
    if (!turn.isKept && chat.lastNumber === 0) {
      this.#session = ''; // a session whose first turn fails is not stored: whether it is there, the watch says
      this.start();
    }
    await chat.try(() => chat.history.readDecisions());
  }
}
