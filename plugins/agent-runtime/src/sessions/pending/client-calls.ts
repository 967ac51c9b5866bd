import { hash } from 'node:crypto';
import type { Message, Principal, SessionStore } from '@plugboard/kernel';
import {
  type AssistantMessage,
  callerId,
  isToolImagesMessage,
  openToolCalls,
  type PendingToolCallsOwner,
  textOf,
} from '@plugboard/kernel/contracts';

/**
 * Keeps the calls and results of the agent's own tools in a stateless turn that ended with client
 * tool calls. The caller does not have them. They are stored until the caller's next request, so
 * that each tool runs once and the model receives complete batches.
 *
 * They belong to one caller, a token or a JWT subject (S-43). The key is a hash of the caller, the
 * random id of the call, and a hash of the user's last message. Nothing is stored for a caller
 * without an identity (S-58).
 */
export class ClientCalls {
  readonly #store: SessionStore;
  readonly #owner: PendingToolCallsOwner;
  readonly #caller: string | undefined;

  constructor(store: SessionStore, agent: string, principal: Principal) {
    this.#store = store;
    this.#owner = { project: principal.project, agent };
    this.#caller = callerId(principal);
  }

  /**
   * Stores the messages of a turn that ran tools and ended with client tool calls.
   *
   * @param asked the conversation before the turn.
   */
  async save(asked: readonly Message[], turn: readonly Message[]): Promise<void> {
    if (this.#caller === undefined) return;
    const ids = turn.some(({ role }) => role === 'tool') ? openToolCalls(turn) : [];
    if (ids.length === 0) return;
    const words = lastWords(asked);
    await this.#store.pendingToolCalls.save(
      this.#owner,
      ids.map((id) => this.#key(id, words)),
      turn,
    );
  }

  /**
   * Replaces each assistant message with client tool calls by the stored messages of its turn, each
   * of them once. A caller that was shown the agent's own calls may have sent them too: then its
   * messages are complete and stay.
   *
   * Takes time in proportion to the messages: the words of a user are hashed once, not for each
   * answer to them, and all calls are looked up together (S-63).
   *
   * Returns the same array if nothing was replaced.
   *
   * @param onLoad receives the size of messages in bytes before they are loaded. May throw.
   */
  async expand(messages: readonly Message[], onLoad: (bytes: number) => void): Promise<readonly Message[]> {
    const keys = this.#keysOf(messages);
    if (keys.size === 0) return messages;
    const found = await this.#store.pendingToolCalls.find(this.#owner, [...new Set(keys.values())]);
    if (found.size === 0) return messages;
    const haveAll = sentCalls(messages);
    const left = new Map(found);
    let isExpanded = false;
    const whole: Message[] = [];
    for (const [index, message] of messages.entries()) {
      const key = keys.get(index);
      const bytes = key === undefined ? undefined : left.get(key);
      let stored: readonly Message[] | undefined;
      if (key !== undefined && bytes !== undefined) {
        left.delete(key);
        onLoad(bytes);
        stored = await this.#store.pendingToolCalls.load(this.#owner, key);
      }
      if (stored && !haveAll(stored, index)) {
        isExpanded = true;
        for (const one of stored) whole.push(one);
      } else whole.push(message);
    }
    return isExpanded ? whole : messages;
  }

  /** The keys of the messages with client tool calls, by their indexes. */
  #keysOf(messages: readonly Message[]): ReadonlyMap<number, string> {
    const keys = new Map<number, string>();
    if (this.#caller === undefined) return keys;
    let words: string | undefined;
    for (const [index, message] of messages.entries()) {
      if (isUser(messages, index)) words = undefined;
      else if (callsTools(message)) {
        words ??= lastWords(messages, index);
        keys.set(index, this.#key(message.tool_calls?.[0]?.id ?? '', words));
      }
    }
    return keys;
  }

  /** @param words a hash of them. */
  #key(callId: string, words: string): string {
    return hash('sha256', JSON.stringify([this.#caller, callId, words]));
  }
}

/**
 * A hash of the text of the user's last message. Images of tools count to the step that they
 * follow: a caller does not have those of the agent's own tools.
 */
function lastWords(messages: readonly Message[], end = messages.length): string {
  let index = end - 1;
  while (index >= 0 && !isUser(messages, index)) index -= 1;
  return hash('sha256', textOf(messages[index]?.content ?? null));
}

function isUser(messages: readonly Message[], index: number): boolean {
  return messages[index]?.role === 'user' && !isToolImagesMessage(messages, index);
}

function callsTools(message: Message): message is AssistantMessage {
  return message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0;
}

/**
 * Returns a function that says whether the turn around a message that the caller sent has all
 * answered calls of a stored one, by name and arguments.
 */
function sentCalls(messages: readonly Message[]): (stored: readonly Message[], index: number) => boolean {
  let turn = 0;
  /** For each message the number of the user's messages before it, and the calls of each number. */
  const turns: number[] = [];
  const calls: Set<string>[] = [new Set()];
  for (const [index, message] of messages.entries()) {
    if (isUser(messages, index)) calls[++turn] = new Set();
    turns.push(turn);
    if (callsTools(message)) for (const call of message.tool_calls ?? []) calls[turn]?.add(textOfCall(call));
  }
  return (stored, index) => {
    const open = new Set(openToolCalls(stored));
    const sent = calls[turns[index] ?? 0];
    return stored.every(
      (message) =>
        !callsTools(message) || message.tool_calls?.every((call) => open.has(call.id) || sent?.has(textOfCall(call)) === true),
    );
  };
}

function textOfCall(call: NonNullable<AssistantMessage['tool_calls']>[number]): string {
  return call.type === 'function'
    ? JSON.stringify([call.function.name, call.function.arguments])
    : JSON.stringify([call.custom.name, call.custom.input]);
}
