import { systemIds } from '@plugboard/kernel/internal';
import { sendCompletion } from './chat-completions.js';
import type { ChatEvent, Conversation } from './conversation.js';
import { type ChatTurn, sendResponse } from './responses.js';
import { ServerClient, StatusError } from './server-client.js';

const NO_RESPONSES =
  'this server does not serve /v1/responses, so tool calls are not shown. The plugin @plugboard/transport-responses adds it';

/**
 * Opens a conversation with an agent of a running server. It uses `/v1/responses`, and chat
 * completions on a server without it.
 *
 * @param address `http://127.0.0.1:8080`, with or without `/v1`.
 * @param name the agent's name; by default the first one that the server lists.
 * @param token the bearer token, for servers that require one.
 * @throws ChatError if the server cannot be reached, or refuses.
 */
export async function openOnServer(address: string, name: string | undefined, token: string | undefined): Promise<Conversation> {
  const client = new ServerClient(address, token);
  const agent = name ?? (await client.firstAgent());
  const session = `chat-${systemIds.base62(12)}`;
  let hasResponses = true;

  async function* send(turn: ChatTurn): AsyncGenerator<ChatEvent> {
    if (hasResponses) {
      try {
        return yield* sendResponse(client, turn);
      } catch (error) {
        if (!(error instanceof StatusError) || (error.status !== 404 && error.status !== 405)) throw error;
        hasResponses = false;
        yield { kind: 'note', text: NO_RESPONSES };
      }
    }
    yield* sendCompletion(client, turn);
  }

  return { agent, send: (text, signal) => send({ agent, session, text, signal }), close: async () => {} };
}
