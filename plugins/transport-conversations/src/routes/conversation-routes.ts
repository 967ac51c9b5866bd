import type { Extensions, Principal } from '@plugboard/kernel';
import { type Account, type AgentRuntime, type Conversation, type Conversations, TurnError } from '@plugboard/kernel/contracts';
import { connectionForTextOnly, namingItems } from '@plugboard/open-responses';
import {
  checkAgentName,
  invalidValue,
  listQueryOf,
  missingParameter,
  optionalString,
  Page,
  parseMetadata,
  parseSessionKey,
  resolveAgent,
  singleValue,
  wrongValue,
} from '@plugboard/openai-protocol';
import type { HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { findItem, paced } from '../items/item-pages.js';
import { messagesOf } from '../items/items-to-messages.js';
import { type ConversationBody, conversationBody } from './conversation.js';
import { keyOf } from './key.js';
import { type ListPlace, listCursor, parseListCursor } from './list-cursor.js';
import { route } from './route.js';

const COLLECTION = '/v1/conversations';
const ONE = `${COLLECTION}/:id`;

/** Maximum length of a search, in UTF-16 units. */
const MAX_SEARCH = 200;

type Fields = Readonly<Record<string, unknown>>;

/**
 * `/v1/conversations` without items: the reference protocol's routes, plus list, fork and cancel.
 * Bodies are validated first. Missing conversations and those of other projects get the same 404.
 */
export class ConversationRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #maxPageBytes: number;

  /** @param maxPageBytes maximum size of one page of a list. */
  constructor(runtimes: Extensions<AgentRuntime>, maxPageBytes: number) {
    this.#runtimes = runtimes;
    this.#maxPageBytes = maxPageBytes;
  }

  get routes(): readonly HttpRoute[] {
    const read = { method: 'GET', access: ['sessions:read'], body: 'none', startsWork: false } as const;
    const write = { method: 'POST', access: ['sessions:write'], body: 'json', startsWork: false } as const;
    return [
      route({
        ...read,
        path: COLLECTION,
        accepts: ['limit', 'after', 'order', 'user', 'agent', 'status', 'search', 'metadata'],
        answer: (request) => this.#list(request),
      }),
      route({
        ...write,
        path: COLLECTION,
        startsWork: true,
        accepts: ['agent', 'id', 'items', 'metadata'],
        answer: (request) => this.#create(request),
      }),
      route({ ...read, path: ONE, answer: (request) => this.#retrieve(request) }),
      route({ ...write, path: ONE, accepts: ['metadata'], answer: (request) => this.#update(request) }),
      route({ ...write, path: ONE, method: 'DELETE', body: 'none', answer: (request) => this.#delete(request) }),
      route({
        ...write,
        path: `${ONE}/fork`,
        access: ['sessions:read', 'sessions:write'],
        startsWork: true,
        accepts: ['id', 'after_item'],
        answer: (request) => this.#fork(request),
      }),
      route({ ...write, path: `${ONE}/cancel`, body: 'none', answer: (request) => this.#cancel(request) }),
    ];
  }

  async #list({ query, principal, account }: HttpRequest): Promise<Page> {
    const { limit, order, after } = listQueryOf(query);
    const user = parseSessionKey(singleValue(query, 'user'), 'user');
    const filter = { user, agent: singleValue(query, 'agent'), status: statusOf(query), search: searchOf(query) };
    const from = after === undefined ? undefined : await this.#placeOf(after, principal);
    const wanted = { limit: limit + 1, order, after: from, ...filter, metadata: metadataOf(query) };
    const page = new Page({ limit, maxBytes: this.#maxPageBytes });
    for (const conversation of await this.#conversations.list(wanted, principal, account))
      if (!page.add(conversationBody(conversation), listCursor(conversation))) break;
    return page;
  }

  /** Where a page begins: after a cursor, or after where a conversation is now. */
  async #placeOf(after: string, principal: Principal): Promise<ListPlace> {
    return (
      parseListCursor(after) ??
      this.#conversations.get(after, principal).catch((error) => {
        if (!(error instanceof TurnError) || error.code !== 'conversation_not_found') throw error;
        throw invalidValue('after', 'there is no such conversation');
      })
    );
  }

  async #create({ body, principal }: HttpRequest): Promise<ConversationBody> {
    const { agent, id, items, metadata } = body as Fields;
    const checked = { key: keyOf(id, 'id'), metadata: parseMetadata(metadata) };
    const target = resolveAgent(this.#runtimes.one(), agentOf(agent), 'agent', principal);
    const given = messagesOf(items ?? [], connectionForTextOnly(target));
    const made = this.#conversations.create(target, { ...checked, messages: given.messages }, principal);
    return conversationBody(await namingItems(given, 'items', made));
  }

  async #retrieve({ params: { id = '' }, principal }: HttpRequest): Promise<ConversationBody> {
    return conversationBody(await this.#conversations.get(id, principal));
  }

  async #update({ params: { id = '' }, body, principal }: HttpRequest): Promise<ConversationBody> {
    const { metadata } = body as Fields;
    if (metadata === undefined) throw missingParameter('metadata');
    return conversationBody(await this.#conversations.setMetadata(id, parseMetadata(metadata), principal));
  }

  async #delete({ params: { id = '' }, principal }: HttpRequest): Promise<object> {
    await this.#conversations.delete(id, principal);
    return { id, object: 'conversation.deleted', deleted: true };
  }

  async #fork({ params: { id = '' }, body, principal, account }: HttpRequest): Promise<ConversationBody> {
    const { id: copy, after_item } = body as Fields;
    const key = keyOf(copy, 'id');
    const item = optionalString(after_item, 'after_item');
    const original = await this.#conversations.get(id, principal);
    const turns = item === undefined ? undefined : await this.#turnsUpTo(item, original, principal, account);
    return conversationBody(await this.#conversations.fork(id, { key, turns }, principal));
  }

  async #cancel({ params: { id = '' }, principal, account }: HttpRequest): Promise<ConversationBody> {
    return conversationBody(await this.#conversations.cancel(id, principal, account));
  }

  /** The number of complete turns up to and including an item. */
  async #turnsUpTo(item: string, { conversation }: Conversation, principal: Principal, account: Account): Promise<number> {
    const read = paced(account, (page) => this.#conversations.turns(conversation, page, principal, account));
    const found = await findItem(conversation, read, item);
    if (!found) throw invalidValue('after_item', 'the conversation has no such item');
    return found.isLast ? found.turn : found.turn - 1;
  }

  get #conversations(): Conversations {
    return this.#runtimes.one().conversations;
  }
}

const STATUSES = ['idle', 'running', 'quarantined'] as const satisfies readonly Conversation['status'][];

function statusOf(query: URLSearchParams): Conversation['status'] | undefined {
  const text = singleValue(query, 'status');
  const status = STATUSES.find((one) => one === text);
  if (text !== undefined && status === undefined) throw wrongValue('status', text, STATUSES);
  return status;
}

/** The entry to find, as `name:value`. */
function metadataOf(query: URLSearchParams): { readonly name: string; readonly value: string } | undefined {
  const text = singleValue(query, 'metadata');
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 1) throw invalidValue('metadata', 'it must be a name, a colon and a value');
  return { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

/** The text to find; undefined if it is blank. */
function searchOf(query: URLSearchParams): string | undefined {
  const text = singleValue(query, 'search')?.trim() ?? '';
  if (text.length > MAX_SEARCH) throw invalidValue('search', `it has more than ${MAX_SEARCH} characters`);
  return text === '' ? undefined : text;
}

/** The name of the agent; empty for the default agent. */
function agentOf(value: unknown): string {
  const name = optionalString(value, 'agent') ?? '';
  checkAgentName(name, 'agent');
  return name;
}
