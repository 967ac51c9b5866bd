import type { HttpReply, HttpRequest, HttpRoute } from '../../src/index.js';
import type { ErrorBody } from './ask.js';

/** A route that answers with what it was given. */
export function echo(path = '/v1/echo'): HttpRoute {
  return post(path, ({ body }) => ({ status: 200, body: body as object }));
}

export function get(
  path: string,
  handle: (request: HttpRequest) => HttpReply | Promise<HttpReply>,
  access: HttpRoute['access'] = [],
): HttpRoute {
  return { method: 'GET', path, access, body: 'none', startsWork: false, handle };
}

export function post(path: string, handle: (request: HttpRequest) => HttpReply | Promise<HttpReply>): HttpRoute {
  return { method: 'POST', path, access: [], body: 'json', startsWork: true, handle };
}

/** A route that never answers; `asked` resolves when it is called. */
export function mute(): { readonly route: HttpRoute; readonly asked: Promise<HttpRequest> } {
  let resolveAsked: (request: HttpRequest) => void = () => {};
  const asked = new Promise<HttpRequest>((resolve) => {
    resolveAsked = resolve;
  });
  const route = get('/v1/mute', (request) => {
    resolveAsked(request);
    return new Promise(() => {});
  });
  return { route, asked };
}

/** Sends a JSON body. */
export function postJson(url: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });
}

/** The error object that a reply holds. */
export async function errorOf(reply: Response): Promise<ErrorBody['error']> {
  const { error } = (await reply.json()) as ErrorBody;
  return error;
}
