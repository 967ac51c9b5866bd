import { createHash } from 'node:crypto';
import type { AgentEvent, PendingToolCallsOwner, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, type Message, textOf } from '@plugboard/kernel';

/**
 * Between two stateless requests, what the caller does not know: the calls and results of the agent's own tools in a turn that ended with calls for the caller. They wait in the
 * session store for the caller's next request, so that each tool runs once and the model sees whole batches.
 *
 * A pending call's key is made of its id and the user's words before it: the model server chose the id, and some servers reuse ids.
 */
export async function savePendingCalls(
  store: SessionStore,
  owner: PendingToolCallsOwner,
  asked: readonly Message[],
  turn: readonly Message[],
  handedOut: readonly string[],
): Promise<void> {
  const words = lastWords(asked);
  await store.pendingToolCalls.save(
    owner,
    handedOut.map((id) => pendingCallKey(id, words)),
    turn,
  );
}

/** Replaces each assistant message that handed calls out by the stored messages of its turn. */
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

/** The ids of the calls that were handed out, where own tools ran in the same turn; none where the caller knows all there is. */
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
