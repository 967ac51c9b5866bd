import { createHash } from 'node:crypto';
import type { AgentEvent, ParkOwner, SessionStore } from '@plugboard/kernel';
import { type AssistantMessage, type Message, textOf } from '@plugboard/kernel';

/**
 * Between two stateless requests, what the caller does not know: the calls and results of the agent's own tools in a turn that ended with calls for the caller. They wait in the
 * session store for the caller's next request, so that each tool runs once and the model sees whole batches.
 *
 * What is parked is found by the id of a call and the user's words before it: ids are the model server's, and some give everybody the same.
 */
export async function park(
  store: SessionStore,
  owner: ParkOwner,
  asked: readonly Message[],
  turn: readonly Message[],
  handedOut: readonly string[],
): Promise<void> {
  const words = lastWords(asked);
  await store.park(
    owner,
    handedOut.map((id) => parkingKey(id, words)),
    turn,
  );
}

/** The caller's messages with what was parked in the place of the assistant message that handed the calls out. */
export async function unpark(store: SessionStore, owner: ParkOwner, messages: readonly Message[]): Promise<readonly Message[]> {
  if (!messages.some(callsTools)) return messages;
  const whole: Message[] = [];
  for (const message of messages) {
    const parked = callsTools(message) ? await find(store, owner, message, whole) : undefined;
    whole.push(...(parked ?? [message]));
  }
  return whole;
}

/** The ids of the calls that were handed out, where own tools ran in the same turn; none where the caller knows all there is. */
export function toPark(events: readonly AgentEvent[]): readonly string[] {
  const calls = events.filter((event) => event.type === 'tool-call');
  return calls.some((call) => call.tool) ? calls.filter((call) => !call.tool).map(({ id }) => id) : [];
}

function find(store: SessionStore, owner: ParkOwner, message: AssistantMessage, before: readonly Message[]) {
  const id = message.tool_calls?.[0]?.id ?? '';
  return store.parked(owner, parkingKey(id, lastWords(before)));
}

function parkingKey(callId: string, words: string): string {
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
