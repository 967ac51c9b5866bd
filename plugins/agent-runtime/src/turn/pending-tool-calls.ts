import { createHash } from 'node:crypto';
import type { AgentEvent, Message, Principal, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, type PendingToolCallsOwner, textOf } from '@plugboard/kernel/contracts';

/**
 * What a caller without a session does not see: the calls and results of the agent's own tools in a
 * turn that ended with calls for the caller. They are stored until the caller's next request, so that
 * each tool runs once and the model receives complete batches.
 *
 * They belong to one caller, a token or a JWT subject (S-43): the key is made of the caller, the id of
 * the call, which is random, and the user's words before it.
 */
export class PendingCalls {
  readonly #store: SessionStore;
  readonly #owner: PendingToolCallsOwner;
  readonly #caller: string;

  constructor(store: SessionStore, agent: string, { project, tokenId = '' }: Principal) {
    this.#store = store;
    this.#owner = { project, agent };
    this.#caller = tokenId;
  }

  /** Stores the messages of a turn if it ended with calls for the caller and ran tools of its own. @param asked what the turn began with. */
  async save(asked: readonly Message[], turn: readonly Message[], events: readonly AgentEvent[]): Promise<void> {
    const ids = clientCallIds(events);
    if (ids.length === 0) return;
    const words = lastWords(asked);
    await this.#store.pendingToolCalls.save(
      this.#owner,
      ids.map((id) => this.#key(id, words)),
      turn,
    );
  }

  /** Replaces each assistant message that handed calls out by the stored messages of its turn, each of these once. */
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

/** The ids of the calls for the caller, if tools of the agent ran in the same turn. */
function clientCallIds(events: readonly AgentEvent[]): readonly string[] {
  const calls = events.filter((event) => event.type === 'tool-call');
  return calls.some((call) => call.tool) ? calls.filter((call) => !call.tool).map(({ id }) => id) : [];
}

function lastWords(messages: readonly Message[]): string {
  const user = messages.findLast(({ role }) => role === 'user');
  return user ? textOf(user.content) : '';
}

function callsTools(message: Message): message is AssistantMessage {
  return message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0;
}
