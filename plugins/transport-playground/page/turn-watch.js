import { ApiError } from './api.js';
import { failTurn } from './cut-turn.js';
import { LOST } from './live.js';
import { OtherTurns } from './other-turns.js';
import { trialOf } from './trial.js';
import { applyToEarlier, denyDecided, endsTurn, endTurn, isRunning, rereadTurn, spokenTurn } from './turn.js';
import { applyEvent } from './turn-events.js';
import { TurnRunner } from './turn-runner.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */

/** The end of a turn that was stopped, until the server says how it ended. */
const STOPPED = { status: 'incomplete', incomplete_details: { reason: 'cancelled' } };

/**
 * Runs a turn of a conversation, or follows one that runs already, and applies its events until its
 * end.
 */
export class TurnWatch {
  #chat;
  #app;
  #runner;
  /** Those that other tabs and clients run. */
  others;
  /** Whether it runs or follows a turn. */
  isBusy = false;

  /**
   * @param {import('./conversation.js').Conversation} chat
   * @param {import('./conversation.js').ConversationDependencies} app
   */
  constructor(chat, app) {
    this.#chat = chat;
    this.#app = app;
    this.#runner = new TurnRunner(app.api, app.server, app.log.note, (isLost) => this.#onConnection(isLost));
    this.others = new OtherTurns(chat, app, this.#runner);
  }

  /** @param {boolean} isLost */
  #onConnection(isLost) {
    const chat = this.#chat;
    const running = chat.turns.filter(isRunning);
    chat.isReconnecting = isLost && running.length > 0;
    for (const turn of running) turn.version++;
    this.#app.onConnection();
    this.#app.onChange();
  }

  /** @param {Turn} turn the last one */
  async run(turn) {
    await this.#runner.idle; // a stopped turn may not have ended yet
    const chat = this.#chat;
    if (!isRunning(turn)) {
      chat.history.remember();
      return this.#app.onEnd(chat); // this one was stopped meanwhile
    }
    const session = chat.isStateless ? '' : (chat.session?.id ?? chat.key);
    await this.#watch(turn, (onEvent) => this.#runner.run(chat.turns, chat.agentOfTurns, session, trialOf(chat), onEvent));
  }

  /** Follows the turn that ran when the page was left, or when the connection was lost. */
  async follow() {
    const turn = this.#chat.turns.find((one) => (isRunning(one) && !one.isOther) || (one.isCut && one.responseId !== ''));
    if (!turn || this.isBusy) return;
    if (!isRunning(turn)) rereadTurn(turn);
    await this.#watch(turn, async (onEvent) => {
      if (turn.responseId === '') throw new ApiError(0, 'The page was left before the server accepted the message.', LOST);
      if (!this.#app.server.isLive) throw new ApiError(0, 'The page was left before the end of the turn.', LOST);
      await this.#runner.resume(turn.responseId, onEvent);
    });
  }

  /**
   * Stops a turn. One of this tab has ended at once: the next message waits for the server, and not
   * its sender. @param {Turn} turn that runs
   */
  stop(turn) {
    if (this.others.cancel(turn)) return;
    this.#runner.stop();
    endTurn(turn, STOPPED);
  }

  /** Closes the live connection: the next turn opens one with the token of that time. */
  close() {
    this.others.stop();
    this.#runner.close();
  }

  /** @param {Turn} turn @param {(onEvent: (event: ProtocolEvent) => void) => Promise<void>} run */
  async #watch(turn, run) {
    const chat = this.#chat;
    const { history } = chat;
    this.isBusy = true;
    try {
      await run((event) => this.#take(turn, event));
    } catch (error) {
      const { name, message, code } = /** @type {ApiError} */ (error);
      if (code === 'invalid_api_key') this.#app.server.access = 'refused';
      if (code === 'approval_decided') denyDecided(turn);
      if (name === 'AbortError') endTurn(turn, STOPPED);
      else if (isRunning(turn)) failTurn(turn, code, message);
    }
    this.isBusy = false;
    chat.isReconnecting = false;
    history.remember();
    this.#app.onChange();
    this.#app.onEnd(chat);
    const isTooLate = turn.isKept && turn.number === 0 && this.#app.server.isLive; // it was stopped after its end
    if (isTooLate || (turn.isCut && turn.responseId === '')) await history.reopen();
    else await chat.try(() => history.readDecisions());
  }

  /** @param {Turn} turn @param {ProtocolEvent} event */
  #take(turn, event) {
    const chat = this.#chat;
    applyEvent(turn, event);
    for (const one of chat.turns) if (one !== turn) applyToEarlier(one, event);
    if (event.type === 'response.created') {
      chat.history.remember();
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
    const chat = this.#chat;
    if (agent === undefined || agent === chat.agentOfTurns) return;
    chat.notice = `There is no agent ${chat.agentOfTurns} any more: ${agent}, the default agent, answers.`;
  }
}
