import { createHash } from 'node:crypto';
import type { Message, Principal, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, type PendingToolCallsOwner, textOf } from '@plugboard/kernel/contracts';
import { openToolCalls } from '../history/session-input.js';

/**
 * Keeps the calls and results of the agent's own tools in a stateless turn that ended with client
 * tool calls. The caller does not have them. They are stored until the caller's next request, so
 * that each tool runs once and the model receives complete batches.
 *
 * They belong to one caller, a token or a JWT subject (S-43). The key is a hash of the caller, the
 * random id of the call, and the text of the user's last message.
 */
export class MixedCalls {
  readonly #store: SessionStore;
  readonly #owner: PendingToolCallsOwner;
  readonly #caller: string;

  constructor(store: SessionStore, agent: string, { project, tokenId = '' }: Principal) {
    this.#store = store;
    this.#owner = { project, agent };
    this.#caller = tokenId;
  }

  /**
   * Stores the messages of a turn that ran tools and ended with client tool calls.
   *
   * @param asked the conversation before the turn.
   */
  async save(asked: readonly Message[], turn: readonly Message[]): Promise<void> {
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
   * of them once.
   */
  async expand(messages: readonly Message[]): Promise<readonly Message[]> {
    if (!messages.some(callsTools)) return messages;
    const expanded = new Set<string>();
    const whole: Message[] = [];
    for (const message of messages) {
      const key = callsTools(message) ? this.#key(message.tool_calls?.[0]?.id ?? '', lastWords(whole)) : undefined;
      const isNew = key !== undefined && !expanded.has(key);
      const stored = isNew ? await this.#store.pendingToolCalls.load(this.#owner, key) : undefined;
      if (isNew) expanded.add(key);
      whole.push(...(stored ?? [message]));
    }
    return whole;
  }

  #key(callId: string, words: string): string {
    return createHash('sha256')
      .update(JSON.stringify([this.#caller, callId, words]))
      .digest('hex');
  }
}

function lastWords(messages: readonly Message[]): string {
  const user = messages.findLast(({ role }) => role === 'user');
  return user ? textOf(user.content) : '';
}

function callsTools(message: Message): message is AssistantMessage {
  return message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0;
}
