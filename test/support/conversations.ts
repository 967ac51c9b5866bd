import type { Test } from 'tap';
import { ASSISTANT, type Reply, TestServer, TRANSPORTS } from './test-server.js';
import { bearer } from './tokens.js';

/** What a server of conversations serves. */
export const CONVERSATION_TRANSPORTS = `${TRANSPORTS}  conversations: {}\n`;

/**
 * Agents that show their tool calls, in part or not at all, and one that takes images and client
 * tools.
 */
export const SEVERAL_AGENTS = `${CONVERSATION_TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, input: [text] }
  sharp: { use: openai, baseUrl: "\${MODEL_URL}", model: big-2, input: [text, image] }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
  discreet: { model: fast, tools: [clock], toolVisibility: names }
  silent: { model: fast, tools: [clock], toolVisibility: none }
  seeing: { model: sharp, clientTools: passthrough, tools: [clock] }
defaultAgent: assistant
`;

/** A conversation as callers see it. */
export interface ConversationBody {
  readonly id: string;
  readonly object: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly status: string;
  readonly turns: number;
  readonly agent: string;
  readonly key: string;
}

/** An item, as far as tests look into it. */
export interface ItemBody {
  readonly id: string;
  readonly type: string;
  readonly role?: string;
  readonly content?: readonly { readonly type: string; readonly text?: string }[];
  readonly [field: string]: unknown;
}

export interface PageBody<T> {
  readonly object: string;
  readonly data: readonly T[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** Items that a conversation is created with. */
export const SEED = [
  { role: 'user', content: 'I am Ann.' },
  { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello, Ann.', annotations: [] }] },
];

/** Calls `/v1/conversations` and what is below, as one caller. */
export class Caller {
  readonly #server: TestServer;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(server: TestServer, token?: string) {
    this.#server = server;
    this.#headers = bearer(token);
  }

  get(path = ''): Promise<Reply> {
    return this.send('GET', path);
  }

  post(path: string, body: unknown = {}): Promise<Reply> {
    return this.send('POST', path, body);
  }

  delete(path: string): Promise<Reply> {
    return this.send('DELETE', path);
  }

  /** A body is sent where there is one, a string as it stands. */
  send(method: string, path: string, body?: unknown): Promise<Reply> {
    return this.#server.request(method, `/v1/conversations${path}`, this.#headers, body);
  }

  /** A new conversation. @throws Error if it was not created. */
  async create(fields: object = {}): Promise<ConversationBody> {
    return bodyOf(await this.post('', fields));
  }

  /** All items, the oldest first. */
  async items(id: string): Promise<readonly ItemBody[]> {
    return bodyOf<PageBody<ItemBody>>(await this.get(`/${id}/items?order=asc&limit=100`)).data;
  }

  /** Who said what, the oldest first. */
  async said(id: string): Promise<readonly string[]> {
    const messages = (await this.items(id)).filter(({ type }) => type === 'message');
    return messages.map(({ role, content = [] }) => `${role}: ${content.map(({ text }) => text).join('')}`);
  }
}

/** The body of a reply that says that it went well. @throws Error where it does not. */
export function bodyOf<T>(reply: Reply): T {
  if (reply.status !== 200) throw new Error(`${reply.status}: ${reply.text}`);
  return reply.body as T;
}

/** A server of conversations with one agent, open to everybody. */
export async function startWithConversations(
  t: Test,
  yaml = CONVERSATION_TRANSPORTS + ASSISTANT,
  options: Parameters<typeof TestServer.start>[2] = {},
) {
  const server = await TestServer.start(t, yaml, options);
  return { server, caller: new Caller(server) };
}
