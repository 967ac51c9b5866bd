import type { Extensions, Principal } from '@plugboard/kernel';
import type { Account, AgentRuntime, Conversations } from '@plugboard/kernel/contracts';
import { connectionForTextOnly, namingItems } from '@plugboard/open-responses';
import { invalidRequest, invalidValue, listQueryOf, missingParameter, Page } from '@plugboard/openai-protocol';
import type { HttpRequest, HttpRoute } from '@plugboard/transport-http';
import type { Item } from '../items/item.js';
import { findItem, paced, type ReadTurns, readItems } from '../items/item-pages.js';
import { someMessagesOf } from '../items/items-to-messages.js';
import { itemsOf } from '../items/turn-to-items.js';
import { readTurns } from '../turns/turn-pages.js';
import { route } from './route.js';

const ITEMS = '/v1/conversations/:id/items';

/**
 * Lists, retrieves and appends the items of a conversation, and lists its turns: what happened in
 * them, and how long it took. Single items cannot be deleted: a history stays complete.
 */
export class ItemRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #maxPageBytes: number;

  /** @param maxPageBytes maximum size of one page of a list. */
  constructor(runtimes: Extensions<AgentRuntime>, maxPageBytes: number) {
    this.#runtimes = runtimes;
    this.#maxPageBytes = maxPageBytes;
  }

  get routes(): readonly HttpRoute[] {
    const read = { method: 'GET', access: ['sessions:read'], body: 'none', startsWork: false } as const;
    const list = { ...read, accepts: ['limit', 'after', 'order'] } as const;
    return [
      route({ ...list, path: ITEMS, answer: (request) => this.#list(request, readItems, 'item') }),
      route({
        ...list,
        path: '/v1/conversations/:id/turns',
        answer: (request) => this.#list(request, readTurns, 'turn'),
      }),
      route({
        method: 'POST',
        path: ITEMS,
        access: ['sessions:write'],
        body: 'json',
        startsWork: true,
        accepts: ['items'],
        answer: (request) => this.#create(request),
      }),
      route({ ...read, path: `${ITEMS}/:item`, answer: (request) => this.#retrieve(request) }),
    ];
  }

  async #list(
    { params: { id = '' }, query, principal, account }: HttpRequest,
    read: typeof readItems,
    what: string,
  ): Promise<Page> {
    const range = listQueryOf(query);
    const page = new Page({ limit: range.limit, maxBytes: this.#maxPageBytes });
    if (await read(id, this.#turnsOf(id, principal, account), range, page)) return page;
    await this.#conversations.get(id, principal); // throws 404 if the conversation does not exist
    throw invalidValue('after', `the conversation has no such ${what}`);
  }

  async #retrieve({ params: { id = '', item = '' }, principal, account }: HttpRequest): Promise<Item> {
    const found = await findItem(id, this.#turnsOf(id, principal, account), item);
    if (found) return found.item;
    await this.#conversations.get(id, principal);
    throw invalidRequest('No item with this id was found in the conversation.', { status: 404, param: 'item_id' });
  }

  async #create({ params: { id = '' }, body, principal, account }: HttpRequest): Promise<Page> {
    const { items } = body as { readonly items?: unknown };
    if (items == null) throw missingParameter('items');
    const { id: session } = await this.#conversations.get(id, principal);
    const given = someMessagesOf(items, this.#textOnly(session.agent, principal));
    const appended = this.#conversations.append(id, given.messages, principal, account);
    const { turns, toolOf } = await namingItems(given, 'items', appended);
    // The caller sent these items, so all of them are shown.
    const made = turns.flatMap((turn) => itemsOf(turn, { conversation: id, toolVisibility: 'full', toolOf }));
    const page = new Page({ limit: made.length, maxBytes: Number.POSITIVE_INFINITY });
    for (const item of made) page.add(item);
    return page;
  }

  /**
   * The model connection that would read the items, if it accepts text only; undefined if the agent
   * no longer exists.
   */
  #textOnly(agent: string, principal: Principal): string | undefined {
    const resolution = this.#runtimes.one().resolve(agent, principal);
    return resolution.kind === 'target' && resolution.target.name === agent
      ? connectionForTextOnly(resolution.target)
      : undefined;
  }

  #turnsOf(id: string, principal: Principal, account: Account): ReadTurns {
    return paced(account, (page) => this.#conversations.turns(id, page, principal, account));
  }

  get #conversations(): Conversations {
    return this.#runtimes.one().conversations;
  }
}
