import { ChatError, type ChatEvent, type ChatTurn } from './conversation.js';
import { parsed, type ServerClient } from './server-client.js';

interface Chunk {
  readonly error?: { readonly message: string };
  readonly choices?: readonly { readonly delta: { readonly content?: string | null }; readonly finish_reason: string | null }[];
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
}

/**
 * Runs a turn over `POST /v1/chat/completions`, which does not show the agent's tools. Approvals
 * are asked for in the text, and decided by a message.
 *
 * @throws ChatError
 */
export async function* sendCompletion(
  client: ServerClient,
  { agent, session, input, signal }: ChatTurn,
): AsyncGenerator<ChatEvent> {
  const messages = [{ role: 'user', content: input }];
  const stream_options = { include_usage: true };
  const body = { model: agent, messages, session_id: session.key, stream: true, stream_options };
  for await (const data of client.stream('/chat/completions', body, {}, signal)) {
    const { error, choices, usage } = parsed<Chunk>(data);
    if (error) throw new ChatError(error.message);
    const [choice] = choices ?? [];
    if (choice?.delta.content) yield { kind: 'text', text: choice.delta.content };
    if (choice?.finish_reason && choice.finish_reason !== 'stop') yield { kind: 'cut', reason: choice.finish_reason };
    if (usage) yield { kind: 'usage', input: usage.prompt_tokens, output: usage.completion_tokens };
  }
}
