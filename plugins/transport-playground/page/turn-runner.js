import { ApiError } from './api.js';
import { Live, LOST } from './live.js';
import { chatFields, responsesFields } from './trial.js';
import { inputItemsOf, messagesOf } from './turn-messages.js';

/** @typedef {import('./turn.js').ProtocolEvent} ProtocolEvent */
/** @typedef {import('./turn.js').Turn} Turn */

/**
 * Runs turns, one at a time: over the live surface if the server has it, else over chat
 * completions.
 */
export class TurnRunner {
  #api;
  #server;
  #live;
  /** @type {AbortController | undefined} */
  #chat;

  /**
   * @param {import('./api.js').Api} api @param {import('./server.js').Server} server
   * @param {import('./api.js').Note} note @param {(isLost: boolean) => void} onConnection
   */
  constructor(api, server, note, onConnection) {
    this.#api = api;
    this.#server = server;
    this.#live = new Live(() => server.liveToken(), note, onConnection);
  }

  /** Resolves when no turn runs on the live surface. */
  get idle() {
    return this.#live.idle;
  }

  /**
   * Runs the last of these turns to its end.
   * @param {Turn[]} turns a stateless request repeats the earlier ones
   * @param {string} model @param {string} session its id or key; empty for a stateless request
   * @param {import('./trial.js').Trial} trial @param {(event: ProtocolEvent) => void} onEvent
   * @throws {ApiError} if the request is refused
   */
  run(turns, model, session, trial, onEvent) {
    const isStateless = session === '';
    const own = isStateless ? turns : turns.slice(-1);
    if (this.#server.isLive) {
      const input = isStateless ? inputItemsOf(own) : nextInput(own[0]);
      const rest = isStateless ? { store: false } : { conversation: session };
      return this.#live.run({ model, ...responsesFields(trial), input, ...rest }, onEvent);
    }
    this.#chat = new AbortController();
    const request = { model, ...chatFields(trial, messagesOf(own)), ...(!isStateless && { session_id: session }) };
    return runChat(this.#api, request, onEvent, this.#chat.signal);
  }

  /**
   * Follows a turn that runs already.
   * @param {string} responseId @param {(event: ProtocolEvent) => void} onEvent
   */
  resume(responseId, onEvent) {
    return this.#live.resume(responseId, onEvent);
  }

  /**
   * Watches the other turns of a session, until `close`. @param {import('./live.js').SessionWatch}
   * watch
   */
  watch(watch) {
    this.#live.watch(watch);
  }

  /** Opens the connection again at once, if it was lost. */
  reconnect() {
    this.#live.reconnect();
  }

  /** Ends a watched response. @param {string} responseId */
  cancelOther(responseId) {
    this.#live.cancelOther(responseId);
  }

  stop() {
    this.#live.cancel();
    this.#chat?.abort();
  }

  /** Closes the live connection: the next turn opens one with the token of that time. */
  close() {
    this.#live.close();
  }
}

/**
 * What the next request of a turn says: decisions about its calls, or its message. @param {Turn |
 * undefined} turn
 */
function nextInput(turn) {
  if (turn?.decisions.length) return turn.decisions;
  return turn?.images.length ? inputItemsOf([{ ...turn, items: [] }]) : turn?.input;
}

/**
 * Runs a turn over `POST /v1/chat/completions`, for servers without the live surface. It emits
 * events of the Responses protocol. Tool calls are not among them: a completion does not contain
 * them.
 *
 * @param {import('./api.js').Api} api @param {object} request the body, without `stream`
 * @param {(event: ProtocolEvent) => void} onEvent @param {AbortSignal} signal stops the turn
 * @throws {ApiError} if the request is refused
 */
export async function runChat(api, request, onEvent, signal) {
  const body = { ...request, stream: true, stream_options: { include_usage: true } };
  const reply = await api.send('POST', 'v1/chat/completions', body, signal);
  const response = { id: '', status: 'in_progress' };
  onEvent({ type: 'response.created', response });
  for await (const data of eventData(/** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (reply.body))) {
    if (data === '[DONE]') break;
    const { error, usage, choices } = JSON.parse(data);
    if (error) return onEvent({ type: 'response.failed', response: { status: 'failed', error } });
    if (usage) Object.assign(response, { usage: usageOf(usage) });
    const [{ delta = {}, finish_reason = null } = {}] = choices ?? [];
    const text = delta.content ?? delta.refusal;
    if (text) onEvent({ type: 'response.output_text.delta', item_id: 'msg', delta: text });
    if (finish_reason === 'length')
      Object.assign(response, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  }
  if (response.status === 'in_progress') response.status = 'completed';
  onEvent({ type: response.status === 'completed' ? 'response.completed' : 'response.incomplete', response });
}

/** @param {{ prompt_tokens: number, completion_tokens: number, total_tokens: number }} usage */
function usageOf({ prompt_tokens, completion_tokens, total_tokens }) {
  return { input_tokens: prompt_tokens, output_tokens: completion_tokens, total_tokens };
}

/** The `data:` lines of an event stream. @param {ReadableStream<Uint8Array<ArrayBuffer>>} body */
async function* eventData(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch(lost);
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) yield line.slice(6);
  }
}

/** @param {Error} error @returns {never} */
function lost(error) {
  throw error.name === 'AbortError' ? error : new ApiError(0, 'The connection was lost.', LOST);
}
