import { type AgentRuntime, type Conversations, type Extensions, inject, injectable, type Principal } from '@plugboard/kernel';
import { connectionForTextOnly } from '@plugboard/open-responses';
import { invalidRequest, invalidValue, missingParameter } from '@plugboard/openai-protocol';
import type { HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { RUNTIMES } from './conversation-routes.js';
import type { Item } from './item.js';
import { findItem, type ReadTurns, readItems } from './item-pages.js';
import { itemsOf } from './items-of-turn.js';
import { listQueryOf, type Page, pageOf } from './lists.js';
import { namingItems, someMessagesOf } from './messages-of-items.js';
import { route } from './route.js';

const ITEMS = '/v1/conversations/:id/items';

/** What a conversation holds, as items: lists them, gives one, and adds some. None can be deleted alone: a history stays whole. */
@injectable()
export class ItemRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(@inject(RUNTIMES) runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  get routes(): readonly HttpRoute[] {
    const read = { method: 'GET', access: ['sessions:read'], body: 'none', startsWork: false } as const;
    return [
      route({ ...read, path: ITEMS, knows: ['limit', 'after', 'order'], answer: (request) => this.#list(request) }),
      route({
        method: 'POST',
        path: ITEMS,
        access: ['sessions:write'],
        body: 'json',
        startsWork: true,
        knows: ['items'],
        answer: (request) => this.#create(request),
      }),
      route({ ...read, path: `${ITEMS}/:item`, answer: (request) => this.#retrieve(request) }),
    ];
  }

  async #list({ params: { id = '' }, query, principal }: HttpRequest): Promise<Page<Item>> {
    const { limit, order, after } = listQueryOf(query);
    const items = await readItems(id, this.#turnsOf(id, principal), { limit: limit + 1, order, after });
    if (items) return pageOf(items, limit);
    await this.#conversations.get(id, principal); // where it is not there, that is what is wrong
    throw invalidValue('after', 'the conversation has no such item');
  }

  async #retrieve({ params: { id = '', item = '' }, principal }: HttpRequest): Promise<Item> {
    const found = await findItem(id, this.#turnsOf(id, principal), item);
    if (found) return found.item;
    await this.#conversations.get(id, principal);
    throw invalidRequest('No item with this id was found in the conversation.', { status: 404, param: 'item_id' });
  }

  async #create({ params: { id = '' }, body, principal }: HttpRequest): Promise<Page<Item>> {
    const { items } = body as { readonly items?: unknown };
    if (items == null) throw missingParameter('items');
    const { id: session } = await this.#conversations.get(id, principal);
    const given = someMessagesOf(items, this.#textOnly(session.agent, principal));
    const { turns, toolOf } = await namingItems(given, this.#conversations.append(id, given.messages, principal));
    // The caller brought them, and is shown all of them.
    const made = turns.flatMap((turn) => itemsOf(turn, { conversation: id, toolVisibility: 'full', toolOf }));
    return pageOf(made, made.length);
  }

  /** The connection that would read what is added, where it takes text only. An agent that is gone reads nothing. */
  #textOnly(agent: string, principal: Principal): string | undefined {
    const resolution = this.#runtimes.one().resolve(agent, principal);
    return resolution.kind === 'target' && resolution.target.name === agent
      ? connectionForTextOnly(resolution.target)
      : undefined;
  }

  #turnsOf(id: string, principal: Principal): ReadTurns {
    return (page) => this.#conversations.turns(id, page, principal);
  }

  get #conversations(): Conversations {
    return this.#runtimes.one().conversations;
  }
}
