import { Account, Budget, OPEN } from '@plugboard/kernel/contracts';
import type { HttpRequest } from '../routing/routes.js';

/** A request to a route: by default `GET /` without a body. `rawBody` is the JSON of `body`. */
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
    account: testAccount(),
    bodyLimit: 20 * 1024 * 1024,
    dropBody: () => undefined,
    note: () => undefined,
    ...overrides,
  };
}

/** An account in a budget of its own. */
function testAccount(): Account {
  const limit = 1024 * 1024 * 1024;
  const account = new Account(new Budget({ name: 'memory of callers', unit: 'bytes', limit, setting: 'limits.memory' }), OPEN);
  account.hold();
  return account;
}
