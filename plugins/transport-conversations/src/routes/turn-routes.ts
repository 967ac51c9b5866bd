import type { Extensions } from '@plugboard/kernel';
import type { AgentRuntime } from '@plugboard/kernel/contracts';
import { invalidValue, listQueryOf, Page } from '@plugboard/openai-protocol';
import type { HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { paced } from '../items/item-pages.js';
import { readTurns } from '../turns/turn-pages.js';
import { route } from './route.js';

/** Lists the turns of a conversation: what happened in them, and how long it took. */
export class TurnRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #maxPageBytes: number;

  /** @param maxPageBytes maximum size of one page of a list. */
  constructor(runtimes: Extensions<AgentRuntime>, maxPageBytes: number) {
    this.#runtimes = runtimes;
    this.#maxPageBytes = maxPageBytes;
  }

  get routes(): readonly HttpRoute[] {
    return [
      route({
        method: 'GET',
        path: '/v1/conversations/:id/turns',
        access: ['sessions:read'],
        body: 'none',
        startsWork: false,
        accepts: ['limit', 'after', 'order'],
        answer: (request) => this.#list(request),
      }),
    ];
  }

  async #list({ params: { id = '' }, query, principal, account }: HttpRequest): Promise<Page> {
    const { conversations } = this.#runtimes.one();
    const range = listQueryOf(query);
    const page = new Page({ limit: range.limit, maxBytes: this.#maxPageBytes });
    const read = paced(account, (turns) => conversations.turns(id, turns, principal, account));
    if (await readTurns(id, read, range, page)) return page;
    await conversations.get(id, principal); // throws 404 if the conversation does not exist
    throw invalidValue('after', 'the conversation has no such turn');
  }
}
