import type { Extensions } from '@plugboard/kernel';
import { isResponseId, parseCompaction, parseRequest, type ResponseService, responseNotFound } from '@plugboard/open-responses';
import { invalidValue, listQueryOf, Page, protocolRoute } from '@plugboard/openai-protocol';
import { requireStreamEncoder, type StreamEncoder } from '@plugboard/transport-chat-completions';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import { cancelWhenStopped, JSON_HEADERS, streamReply } from './reply.js';

const COLLECTION = '/v1/responses';
const ONE = `${COLLECTION}/:response_id`;

/** Bytes of input items on one page of their list. */
const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** The routes of `/v1/responses`. */
export class ResponseRoutes {
  readonly routes: readonly HttpRoute[];
  readonly #name: string;
  readonly #services: Extensions<ResponseService>;
  readonly #encoders: Extensions<StreamEncoder>;

  /** @param name the key of the entry. */
  constructor(name: string, services: Extensions<ResponseService>, encoders: Extensions<StreamEncoder>) {
    this.#name = name;
    this.#services = services;
    this.#encoders = encoders;
    const read = { method: 'GET', access: ['sessions:read'], body: 'none', startsWork: false } as const;
    this.routes = [
      route({ method: 'POST', path: `${COLLECTION}/compact`, access: ['chat'], body: 'json', startsWork: true }, (request) =>
        this.#compact(request),
      ),
      route(
        { method: 'POST', path: `${COLLECTION}/input_tokens`, access: ['chat'], body: 'json', startsWork: false },
        (request) => this.#countTokens(request),
      ),
      route({ ...read, path: ONE }, (request) => this.#get(request)),
      route({ ...read, path: `${ONE}/input_items` }, (request) => this.#inputItems(request)),
      route({ ...read, path: ONE, method: 'DELETE', access: ['sessions:write'] }, (request) => this.#delete(request)),
      route({ ...read, path: `${ONE}/cancel`, method: 'POST', access: ['chat'] }, (request) => this.#cancel(request)),
    ];
  }

  /** The response in its current state, or the events of one that can still be resumed. */
  async #get(request: HttpRequest): Promise<HttpReply> {
    const { principal, account, query, signal } = request;
    const id = idOf(request);
    if (query.get('stream') !== 'true') return json(await this.#service.get(id, principal, account));
    const encoder = requireStreamEncoder(this.#encoders);
    const { response, reader } = await this.#service.resume(id, startingAfter(query), { principal, account, extensions: false });
    cancelWhenStopped(response, signal);
    return streamReply(reader, encoder, {}, signal, () => {});
  }

  async #inputItems(request: HttpRequest): Promise<HttpReply> {
    const { limit, order, after } = listQueryOf(request.query);
    const items = await this.#service.inputItems(idOf(request), request.principal, request.account);
    const inOrder = (order === 'asc' ? items : items.toReversed()) as readonly { readonly id: string }[];
    const start = after === undefined ? 0 : inOrder.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && start === 0) throw invalidValue('after', 'the request has no such item');
    const page = new Page({ limit, maxBytes: MAX_PAGE_BYTES });
    for (const item of inOrder.slice(start)) if (!page.add(item)) break;
    return json(page.toText());
  }

  async #cancel(request: HttpRequest): Promise<HttpReply> {
    return json(await this.#service.cancel(idOf(request), request.principal, request.account));
  }

  async #delete(request: HttpRequest): Promise<HttpReply> {
    const id = idOf(request);
    await this.#service.delete(id, request.principal, request.account);
    return { status: 200, body: { id, object: 'response', deleted: true } };
  }

  /** Summarizes a conversation. */
  async #compact(request: HttpRequest): Promise<HttpReply> {
    return { status: 200, body: await this.#service.compact(parseCompaction(request.body), this.#callerOf(request)) };
  }

  /** Estimates the tokens of a request (CL-6). */
  async #countTokens(request: HttpRequest): Promise<HttpReply> {
    const input_tokens = await this.#service.countTokens(parseRequest(request.body), this.#callerOf(request));
    return { status: 200, body: { object: 'response.input_tokens', input_tokens } };
  }

  #callerOf({ principal, requestId, signal, account, bodyLimit }: HttpRequest) {
    return {
      principal,
      requestId,
      transport: this.#name,
      signal,
      account,
      inputLimit: { bytes: bodyLimit, setting: 'bodyLimit' },
    };
  }

  get #service(): ResponseService {
    return this.#services.one();
  }
}

function route(route: Omit<HttpRoute, 'handle'>, handle: HttpRoute['handle']): HttpRoute {
  return protocolRoute({ ...route, handle }, { input: 'input' });
}

/** @param body JSON. */
function json(body: string): HttpReply {
  return { status: 200, headers: JSON_HEADERS, body };
}

function idOf({ params: { response_id: id = '' } }: HttpRequest): string {
  if (!isResponseId(id)) throw responseNotFound(id);
  return id;
}

/** The sequence number of the last event that the client has seen; -1 if it has seen none. */
function startingAfter(query: URLSearchParams): number {
  const text = query.get('starting_after');
  if (text === null) return -1;
  if (!/^\d{1,9}$/.test(text)) throw invalidValue('starting_after', 'expected the sequence number of an event');
  return Number(text);
}
