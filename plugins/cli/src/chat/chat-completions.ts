import { ChatError, type ChatEvent } from './conversation.js';
import type { ChatTurn } from './responses.js';
import type { ServerClient } from './server-client.js';

interface Chunk {
  readonly error?: { readonly message: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string | null }; readonly finish_reason: string | null }[];
}

/**
 * Runs a turn over `POST /v1/chat/completions`, which does not show the agent's tools.
 *
 * @throws ChatError
 */
export async function* sendCompletion(
  client: ServerClient,
  { agent, session, text, signal }: ChatTurn,
): AsyncGenerator<ChatEvent> {
  const body = { model: agent, messages: [{ role: 'user', content: text }], session_id: session, stream: true };
  for await (const data of client.stream('/chat/completions', body, {}, signal)) {
    const { error, choices } = JSON.parse(data) as Chunk;
    if (error) throw new ChatError(error.message);
    const [choice] = choices ?? [];
    if (choice?.delta.content) yield { kind: 'text', text: choice.delta.content };
    if (choice?.finish_reason && choice.finish_reason !== 'stop') yield { kind: 'cut', reason: choice.finish_reason };
  }
}
