import type { Extensions, Principal } from '@plugboard/kernel';
import type { AgentRuntime, TargetInfo } from '@plugboard/kernel/contracts';
import { formatError, invalidRequest } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';

/** An entry of the model list (C-155, C-156). */
interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: 0;
  readonly owned_by: 'svc:agent' | 'svc:model';
}

/** Lists the agents and models in the caller's scope. Sends no request to model servers. */
export class Models {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  /**
   * `GET /v1/models` and `GET /v1/models/{id}`. An id may contain slashes, percent-encoded or not.
   */
  get routes(): readonly HttpRoute[] {
    const route = { method: 'GET', access: ['models:read'], body: 'none', startsWork: false, formatError } as const;
    return [
      { ...route, path: '/v1/models', handle: (request) => this.#list(request) },
      { ...route, path: '/v1/models/*id', handle: (request) => this.#retrieve(request) },
    ];
  }

  #list({ principal }: HttpRequest): HttpReply {
    return { status: 200, body: { object: 'list', data: this.#reachable(principal).map(asModel) } };
  }

  #retrieve({ principal, params: { id = '' } }: HttpRequest): HttpReply {
    const listing = this.#reachable(principal).find(({ name }) => name === id);
    if (listing) return { status: 200, body: asModel(listing) };
    throw invalidRequest(`The model '${id}' does not exist`, { status: 404, param: 'model', code: 'model_not_found' });
  }

  #reachable(principal: Principal): readonly TargetInfo[] {
    return this.#runtimes.one().list(principal);
  }
}

function asModel({ name, kind }: TargetInfo): Model {
  return { id: name, object: 'model', created: 0, owned_by: kind === 'agent' ? 'svc:agent' : 'svc:model' };
}
