import { OPEN } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '../routing/routes.js';

/**
 * A request to a route: by default `GET /` on an open server without a body. `rawBody` is the JSON
 * of `body`.
 */
export function testHttpRequest(overrides: Partial<HttpRequest> = {}): HttpRequest {
  return {
    method: 'GET',
    path: '/',
    params: {},
    query: new URLSearchParams(),
    headers: {},
    rawHeaders: [],
    rawBody: overrides.body === undefined ? '' : JSON.stringify(overrides.body),
    body: undefined,
    principal: OPEN,
    requestId: 'req_00000000000000000000000000000001',
    acceptedAt: 0,
    signal: new AbortController().signal,
    reserveReply: () => ({ setting: 'transports.http.replyMemory', resize: () => true, end: () => undefined }),
    note: () => undefined,
    ...overrides,
  };
}
