import { sendCompletion } from './chat-completions.js';
import type { ChatAgents, ChatEvent, ChatSession, ChatTurn } from './conversation.js';
import { sendResponse } from './responses.js';
import { ServerClient, StatusError } from './server-client.js';

const NO_RESPONSES =
  'this server does not serve /v1/responses, so tool calls are not shown. The plugin @plugboard/transport-responses adds it';

/**
 * Opens the agents of a running server. Turns use `/v1/responses`, and chat completions on a server
 * without it.
 *
 * @param address `http://127.0.0.1:8080`, with or without `/v1`.
 * @param token the bearer token, for servers that require one.
 * @throws ChatError if the address is not a URL.
 */
export function openOnServer(address: string, token: string | undefined): ChatAgents {
  const client = new ServerClient(address, token);
  let hasResponses = true;

  async function* run(turn: ChatTurn): AsyncGenerator<ChatEvent> {
    if (hasResponses) {
      try {
        return yield* sendResponse(client, turn);
      } catch (error) {
        const isMissing = error instanceof StatusError && (error.status === 404 || error.status === 405);
        if (!isMissing || typeof turn.input !== 'string') throw error;
        hasResponses = false;
        yield { kind: 'note', text: NO_RESPONSES };
      }
    }
    yield* sendCompletion(client, turn);
  }

  return {
    names: () => client.agents(),
    sessions: (agent) => sessionsOf(client, agent),
    run,
    close: async () => {},
  };
}

async function sessionsOf(client: ServerClient, agent: string): Promise<readonly ChatSession[]> {
  const { data } = await client.get<{ data: readonly { key: string; title?: string | null; updated_at: number }[] }>(
    `/conversations?agent=${encodeURIComponent(agent)}`,
  );
  return data.map(({ key, title, updated_at }) => ({ key, title: title ?? '', updatedAt: new Date(updated_at * 1000) }));
}
