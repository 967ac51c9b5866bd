import { createHash } from 'node:crypto';
import type { AgentEvent, PendingToolCallsOwner, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, type Message, textOf } from '@plugboard/kernel';

/**
 * Saves the calls and results of the agent's own tools when a stateless turn ends with client tool
 * calls. The caller's next request does not contain them, so they wait in the session store. Each
 * tool runs once, and the model sees complete batches.
 *
 * The key is a call id and the user's words before it: the model server chose the id, and some
 * servers reuse ids.
 */
export async function savePendingCalls(
  store: SessionStore,
  owner: PendingToolCallsOwner,
  asked: readonly Message[],
  turn: readonly Message[],
  clientCallIds: readonly string[],
): Promise<void> {
  const words = lastWords(asked);
  await store.pendingToolCalls.save(
    owner,
    clientCallIds.map((id) => pendingCallKey(id, words)),
    turn,
  );
}

/** Replaces each assistant message with pending client calls by the stored messages of its turn. */
export async function expandPendingCalls(
  store: SessionStore,
  owner: PendingToolCallsOwner,
  messages: readonly Message[],
): Promise<readonly Message[]> {
  if (!messages.some(callsTools)) return messages;
  const whole: Message[] = [];
  for (const message of messages) {
    const stored = callsTools(message) ? await find(store, owner, message, whole) : undefined;
    whole.push(...(stored ?? [message]));
  }
  return whole;
}

/**
 * Returns the ids of the client tool calls if tools of the agent ran in the same turn. Otherwise
 * nothing has to be saved.
 */
export function pendingCallIds(events: readonly AgentEvent[]): readonly string[] {
  const calls = events.filter((event) => event.type === 'tool-call');
  return calls.some((call) => call.tool) ? calls.filter((call) => !call.tool).map(({ id }) => id) : [];
}

function find(store: SessionStore, owner: PendingToolCallsOwner, message: AssistantMessage, before: readonly Message[]) {
  const id = message.tool_calls?.[0]?.id ?? '';
  return store.pendingToolCalls.load(owner, pendingCallKey(id, lastWords(before)));
}

function pendingCallKey(callId: string, words: string): string {
  return createHash('sha256')
    .update(JSON.stringify([callId, words]))
    .digest('hex');
}

function lastWords(messages: readonly Message[]): string {
  const user = messages.findLast(({ role }) => role === 'user');
  return user ? textOf(user.content) : '';
}

function callsTools(message: Message): message is AssistantMessage {
  return message.role === 'assistant' && (message.tool_calls?.length ?? 0) > 0;
}
