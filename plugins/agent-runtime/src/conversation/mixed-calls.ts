import { createHash } from 'node:crypto';
import type { Message, Principal, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, callerId, openToolCalls, type PendingToolCallsOwner, textOf } from '@plugboard/kernel/contracts';

/**
 * Keeps the calls and results of the agent's own tools in a stateless turn that ended with client
 * tool calls. The caller does not have them. They are stored until the caller's next request, so
 * that each tool runs once and the model receives complete batches.
 *
 * They belong to one caller, a token or a JWT subject (S-43). The key is a hash of the caller, the
 * random id of the call, and the text of the user's last message. Nothing is stored for a caller
 * without an identity (S-58).
 */
export class MixedCalls {
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
   * @param onLoad receives what is loaded. May throw.
   */
  async expand(messages: readonly Message[], onLoad: (stored: readonly Message[]) => void): Promise<readonly Message[]> {
    if (this.#caller === undefined || !messages.some(callsTools)) return messages;
    const expanded = new Set<string>();
    const whole: Message[] = [];
    for (const [index, message] of messages.entries()) {
      const key = callsTools(message) ? this.#key(message.tool_calls?.[0]?.id ?? '', lastWords(whole)) : undefined;
      const isNew = key !== undefined && !expanded.has(key);
      const stored = isNew ? await this.#store.pendingToolCalls.load(this.#owner, key) : undefined;
      if (stored) onLoad(stored);
      if (isNew) expanded.add(key);
      const isMissing = stored && !hasCalls(turnAround(messages, index), stored);
      whole.push(...(isMissing ? stored : [message]));
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

/** The messages from the last user message before an index to the next one after it. */
function turnAround(messages: readonly Message[], index: number): readonly Message[] {
  const isUser = ({ role }: Message) => role === 'user';
  const start = messages.slice(0, index).findLastIndex(isUser) + 1;
  const next = messages.slice(index).findIndex(isUser);
  return messages.slice(start, next < 0 ? messages.length : index + next);
}

/** Whether messages have all answered calls of a stored turn, by name and arguments. */
function hasCalls(messages: readonly Message[], stored: readonly Message[]): boolean {
  const callsOf = (of: readonly Message[]) => of.flatMap((message) => (callsTools(message) ? (message.tool_calls ?? []) : []));
  const open = new Set(openToolCalls(stored));
  const present = callsOf(messages).map(textOfCall);
  return callsOf(stored).every((call) => open.has(call.id) || present.includes(textOfCall(call)));
}

function textOfCall(call: NonNullable<AssistantMessage['tool_calls']>[number]): string {
  return call.type === 'function'
    ? JSON.stringify([call.function.name, call.function.arguments])
    : JSON.stringify([call.custom.name, call.custom.input]);
}
