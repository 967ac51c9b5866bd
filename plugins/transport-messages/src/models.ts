import type { Extensions, Principal } from '@plugboard/kernel';
import type { AgentRuntime, TargetInfo } from '@plugboard/kernel/contracts';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { formatError, requestIdHeader } from './errors/format-error.js';
import { invalidField, MessagesError } from './errors/messages-error.js';
import { quote } from './request/fields.js';

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 1_000;

/** Agents have no date. */
const CREATED_AT = '1970-01-01T00:00:00Z';

type Model = ReturnType<typeof asModel>;

/**
 * The agents and models in the caller's scope, in the shape of the protocol, for requests that are
 * recognised as the protocol's. Other requests for the same paths are not for these routes.
 */
export class Models {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  /** `GET /v1/models` and `GET /v1/models/{id}`. */
  get routes(): readonly HttpRoute[] {
    const route = {
      method: 'GET',
      access: ['models:read'],
      tokenHeader: 'x-api-key',
      body: 'none',
      startsWork: false,
      formatError,
    } as const;
    return [
      {
        ...route,
        path: '/v1/models',
        when: ({ headers, query }) => 'anthropic-version' in headers || query.has('limit'),
        handle: (request) => this.#list(request),
      },
      {
        ...route,
        path: '/v1/models/*id',
        when: ({ headers }) => 'anthropic-version' in headers,
        handle: (request) => this.#retrieve(request),
      },
    ];
  }

  #list({ principal, query, requestId }: HttpRequest): HttpReply {
    const all = this.#reachable(principal);
    const limit = limitOf(query.get('limit'));
    const [after, before] = [query.get('after_id'), query.get('before_id')];
    const start = after === null ? 0 : indexOf(all, after, 'after_id') + 1;
    const end = before === null ? all.length : indexOf(all, before, 'before_id');
    const listed = before === null ? all.slice(start, end) : all.slice(start, end).slice(-limit);
    const data = listed.slice(0, limit);
    const has_more = before === null ? listed.length > limit : end - start > limit;
    return {
      status: 200,
      headers: requestIdHeader(requestId),
      body: { data, has_more, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
    };
  }

  #retrieve({ principal, params: { id = '' }, requestId }: HttpRequest): HttpReply {
    const model = this.#reachable(principal).find((one) => one.id === id);
    if (model) return { status: 200, headers: requestIdHeader(requestId), body: model };
    throw new MessagesError(404, 'not_found_error', `model: ${quote(id)}`);
  }

  #reachable(principal: Principal): readonly Model[] {
    return this.#runtimes.one().list(principal).map(asModel);
  }
}

function asModel({ name, description }: TargetInfo) {
  return { type: 'model', id: name, display_name: description ?? name, created_at: CREATED_AT };
}

function limitOf(text: string | null): number {
  if (text === null) return DEFAULT_LIMIT;
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw invalidField('limit', `Input should be an integer from 1 to ${MAX_LIMIT}`);
}

function indexOf(models: readonly Model[], id: string, field: string): number {
  const index = models.findIndex((model) => model.id === id);
  if (index >= 0) return index;
  throw invalidField(field, `No model has the id '${quote(id)}'`);
}
