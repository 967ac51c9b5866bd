import { type AgentRuntime, type Extensions, inject, injectable, type Principal, type TargetInfo } from '@plugboard/kernel';
import { invalidRequest } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';

/** Where the plugin's `register` leaves its reads for the class below. */
export const RUNTIMES = Symbol('transport-models.runtimes');

/** An entry of the model list (service document, Model list response). */
interface Model {
  readonly id: string;
  readonly object: 'model';
  readonly created: 0;
  readonly owned_by: 'svc:agent' | 'svc:model';
}

/** Tells callers which agents and raw models they can reach. No model server is asked. */
@injectable()
export class Models {
  readonly #runtimes: Extensions<AgentRuntime>;

  constructor(@inject(RUNTIMES) runtimes: Extensions<AgentRuntime>) {
    this.#runtimes = runtimes;
  }

  /**
   * `GET /v1/models`, and `GET /v1/models/{id}` for one of them. An id may have slashes, which clients send encoded or as they
   * are.
   */
  get routes(): readonly HttpRoute[] {
    const route = { method: 'GET', access: ['models:read'], body: 'none', startsWork: false } as const;
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
