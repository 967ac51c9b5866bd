import type { Extensions } from '@plugboard/kernel';
import { type AgentRuntime, type Approval, type Approvals, TurnError } from '@plugboard/kernel/contracts';
import { listQueryOf, missingParameter, optionalString, Page, protocolRoute, wrongType } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';

const COLLECTION = '/v1/approvals';

/**
 * `/v1/approvals`. The runtime shows and lets decide what the caller may: everything with the scope
 * `approve`, with `chat` what it asked for itself. All else is the same 404.
 */
export class ApprovalRoutes {
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #maxPageBytes: number;

  /** @param maxPageBytes maximum size of one page of a list. */
  constructor(runtimes: Extensions<AgentRuntime>, maxPageBytes: number) {
    this.#runtimes = runtimes;
    this.#maxPageBytes = maxPageBytes;
  }

  get routes(): readonly HttpRoute[] {
    const list: HttpRoute = {
      method: 'GET',
      path: COLLECTION,
      access: { anyOf: ['approve', 'chat'] },
      body: 'none',
      startsWork: false,
      handle: (request) => this.#list(request),
    };
    const decide: HttpRoute = {
      method: 'POST',
      path: `${COLLECTION}/:id`,
      access: [],
      body: 'json',
      startsWork: false,
      handle: (request) => this.#decide(request),
    };
    return [protocolRoute(list), protocolRoute(decide, { isRepeatable: true })];
  }

  /** Absent if the runtime knows none. */
  get #approvals(): Approvals | undefined {
    return this.#runtimes.one().approvals;
  }

  async #list({ query, principal, account }: HttpRequest): Promise<HttpReply> {
    const { limit, order, after } = listQueryOf(query);
    const found = (await this.#approvals?.list({ limit: limit + 1, order, after }, principal, account)) ?? [];
    const page = new Page({ limit, maxBytes: this.#maxPageBytes });
    for (const approval of found) if (!page.add(bodyOf(approval))) break;
    return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: page.toText() };
  }

  async #decide({ params: { id = '' }, body, principal, account }: HttpRequest): Promise<HttpReply> {
    const { approve, reason } = body as Readonly<Record<string, unknown>>;
    if (approve == null) throw missingParameter('approve');
    if (typeof approve !== 'boolean') throw wrongType('approve', 'a boolean', approve);
    const decision = { approve, reason: optionalString(reason, 'reason') };
    const decided = await this.#approvals?.decide(id, decision, principal, account);
    if (!decided) throw new TurnError('approval_not_found', 'There is no such approval.');
    return { status: 202, headers: {}, body: { ...bodyOf(decided), approve } };
  }
}

function bodyOf(approval: Approval) {
  const { id, session, conversation, agent, tool, createdAt, expiresAt } = approval;
  return {
    id,
    object: 'approval',
    session,
    conversation,
    agent,
    tool: tool ? `${tool.entry}/${tool.name}` : null,
    arguments: approval.arguments ?? null,
    created_at: Math.floor(createdAt / 1000),
    expires_at: Math.floor(expiresAt / 1000),
  };
}
