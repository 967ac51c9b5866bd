import { sendCompletion } from './chat-completions.js';
import {
  type ChatAgents,
  type ChatEvent,
  type ChatMessage,
  type ChatSession,
  type ChatTurn,
  MAX_LAST_MESSAGES,
} from './conversation.js';
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
    keepsSessions: true,
    targets: () => client.targets(),
    sessions: (agent) => sessionsOf(client, agent),
    lastMessages: (agent, key) => lastMessages(client, agent, key),
    run,
    close: async () => {},
  };
}

/** A conversation of `GET /v1/conversations`. */
interface ServerSession {
  readonly id: string;
  readonly key: string;
  readonly title?: string | null;
  readonly updated_at: number;
}

/** An item of `GET /v1/conversations/{id}/items`. */
interface ServerItem {
  readonly type: string;
  readonly role?: string;
  readonly content?: readonly { readonly text?: string }[];
}

async function sessionsOf(client: ServerClient, agent: string): Promise<readonly ChatSession[]> {
  const { data } = await client.get<{ data: readonly ServerSession[] }>(`/conversations?agent=${encodeURIComponent(agent)}`);
  return data.map(({ key, title, updated_at }) => ({ key, title: title ?? '', updatedAt: new Date(updated_at * 1000) }));
}

async function lastMessages(client: ServerClient, agent: string, key: string): Promise<readonly ChatMessage[] | undefined> {
  const query = new URLSearchParams({ agent, search: key, limit: '100' });
  try {
    const sessions = await client.get<{ data: readonly ServerSession[] }>(`/conversations?${query}`);
    const session = sessions.data.find((one) => one.key === key);
    if (session === undefined) return [];
    const { data } = await client.get<{ data: readonly ServerItem[] }>(`/conversations/${session.id}/items?order=desc&limit=20`);
    return data.flatMap(messageOf).slice(0, MAX_LAST_MESSAGES).toReversed();
  } catch (error) {
    // A server without these routes, or a token that may not read sessions.
    if (error instanceof StatusError) return undefined;
    throw error;
  }
}

function messageOf({ type, role, content = [] }: ServerItem): readonly ChatMessage[] {
  const text = content.map((part) => part.text ?? '').join('');
  return type === 'message' && (role === 'user' || role === 'assistant') && text !== '' ? [{ role, text }] : [];
}
