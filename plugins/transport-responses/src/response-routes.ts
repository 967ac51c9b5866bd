import type { Extensions } from '@plugboard/kernel';
import { failureOf, TurnError } from '@plugboard/kernel/contracts';
import { isResponseId, type LiveResponse, parseCompaction, type ResponseService } from '@plugboard/open-responses';
import { invalidRequest, invalidValue, type ProtocolError, turnFailureError } from '@plugboard/openai-protocol';
import { requireStreamEncoder, type StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { CreateResponse } from './create-response.js';
import { JSON_HEADERS, streamReply } from './reply.js';

/** The routes of `/v1/responses`. */
export class ResponseRoutes {
  readonly routes: readonly HttpRoute[];
  readonly #service: () => ResponseService;
  readonly #encoders: Extensions<StreamEncoder>;

  constructor(service: () => ResponseService, encoders: Extensions<StreamEncoder>) {
    this.#service = service;
    this.#encoders = encoders;
    const path = '/v1/responses/:response_id';
    const own = { body: 'none', startsWork: false } as const;
    this.routes = [
      new CreateResponse(service, encoders),
      {
        method: 'POST',
        path: '/v1/responses/compact',
        access: ['chat'],
        body: 'json',
        startsWork: true,
        handle: (request) => refusing(() => this.#compact(request)),
      },
      { ...own, method: 'GET', path, access: ['sessions:read'], handle: (request) => refusing(() => this.#get(request)) },
      { ...own, method: 'DELETE', path, access: ['sessions:write'], handle: (request) => refusing(() => this.#delete(request)) },
      {
        ...own,
        method: 'POST',
        path: `${path}/cancel`,
        access: ['chat'],
        handle: (request) => refusing(() => this.#cancel(request)),
      },
    ];
  }

  /** The response in its current state, or the events of one that can still be resumed. */
  async #get(request: HttpRequest): Promise<HttpReply> {
    const id = idOf(request);
    const live = this.#service().live.find(id, request.principal);
    if (isTrue(request.query, 'stream')) return this.#resume(request, id, live);
    const body = live?.snapshot() ?? (await this.#service().stored.get(id, request.principal))?.response;
    if (body === undefined) throw notFound(id);
    return { status: 200, headers: JSON_HEADERS, body };
  }

  async #resume(request: HttpRequest, id: string, live: LiveResponse | undefined): Promise<HttpReply> {
    const encoder = requireStreamEncoder(this.#encoders);
    const after = startingAfter(request.query);
    if (!live && !(await this.#service().stored.get(id, request.principal))) throw notFound(id);
    if (live && after >= live.nextSequence) {
      throw invalidValue('starting_after', `the response has no event ${after} yet; its last one is ${live.nextSequence - 1}`);
    }
    const reader = live?.read(after + 1);
    if (!live || !reader) throw expired(id);
    return streamReply(reader, encoder, {}, request.signal, () => {});
  }

  async #cancel(request: HttpRequest): Promise<HttpReply> {
    const id = idOf(request);
    const live = this.#service().live.find(id, request.principal);
    live?.cancel();
    const body = (await live?.ended)?.response ?? (await this.#service().stored.get(id, request.principal))?.response;
    if (body === undefined) throw notFound(id);
    return { status: 200, headers: JSON_HEADERS, body };
  }

  /** A summary in place of a conversation. */
  async #compact(request: HttpRequest): Promise<HttpReply> {
    const body = parseCompaction(request.body);
    const { principal, requestId, signal } = request;
    return { status: 200, body: await this.#service().compact(body, { principal, requestId, signal }) };
  }

  /** A response that still runs is cancelled first. */
  async #delete(request: HttpRequest): Promise<HttpReply> {
    const id = idOf(request);
    const live = this.#service().live.find(id, request.principal);
    live?.cancel();
    await live?.ended;
    this.#service().live.forget(id);
    const wasStored = await this.#service().stored.delete(id, request.principal);
    if (!live && !wasStored) throw notFound(id);
    return { status: 200, body: { id, object: 'response', deleted: true } };
  }
}

/** Answers what the runtime refuses with a status. */
async function refusing(work: () => Promise<HttpReply>): Promise<HttpReply> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof TurnError ? turnFailureError(failureOf(error, false), true) : error;
  }
}

function idOf({ params: { response_id: id = '' } }: HttpRequest): string {
  if (!isResponseId(id)) throw notFound(id);
  return id;
}

function isTrue(query: URLSearchParams, name: string): boolean {
  return query.get(name) === 'true';
}

/** The number of the last event that the client has seen; -1 if it has seen none. */
function startingAfter(query: URLSearchParams): number {
  const text = query.get('starting_after');
  if (text === null) return -1;
  if (!/^\d{1,9}$/.test(text)) throw invalidValue('starting_after', 'expected the sequence number of an event');
  return Number(text);
}

function notFound(id: string): ProtocolError {
  return invalidRequest(`Response with id '${id.slice(0, 64).toWellFormed()}' not found.`, {
    status: 404,
    param: 'response_id',
    code: 'response_not_found',
  });
}

function expired(id: string): ProtocolError {
  return invalidRequest(
    `The events of response '${id}' are no longer kept. Get the response itself: the same request without 'stream'.`,
    { status: 410, param: 'starting_after', code: 'response_events_expired' },
  );
}
