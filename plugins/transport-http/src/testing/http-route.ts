import assert from 'node:assert/strict';
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { SCOPES } from '@plugboard/kernel/contracts';
import { Contract, type DeclareTest } from '@plugboard/testing';
import { HttpError } from '../errors/http-error.js';
import type { Access, HttpReply, HttpRequest, HttpRoute } from '../routing/routes.js';
import { scopesOf } from '../routing/scopes-of.js';
import { addErrorCases } from './error-formatter.js';
import { testHttpRequest } from './test-http-request.js';

/** Milliseconds until a request whose caller has disconnected must have ended. */
const TIME_LIMIT = 2_000;

export interface HttpRouteContractOptions {
  /** Returns a route that is ready for use. Called once per case; the caller closes it. */
  readonly open: () => Promise<HttpRoute> | HttpRoute;
  /**
   * The differing parts of a request that the route answers without an error, for example
   * `{ body: { … } }`. Without it, the route may refuse the request with an `HttpError` below 500.
   */
  readonly request?: Partial<HttpRequest>;
}

/**
 * Declares the tests of an HTTP route (`HttpRoute`). The route runs without a server.
 *
 * ```ts
 * httpRouteContract(t.test, { open: () => new WebhookRoute(), request: { method: 'POST', body: { id: 1 } } });
 * ```
 */
export function httpRouteContract(test: DeclareTest, { open, request }: HttpRouteContractOptions): void {
  const contract = new Contract('An HTTP route', test);
  const sample = async (overrides: Partial<HttpRequest> = {}) => {
    const route = await open();
    const body = route.body === 'json' ? {} : undefined;
    return { route, sent: testHttpRequest({ method: route.method, path: route.path, body, ...request, ...overrides }) };
  };

  contract.add('has an absolute path', 'HttpRoute.path', async () => {
    const { path } = await open();
    assert.match(path, /^\/[^?#\s]*$/, `its path is "${path}"`);
  });
  contract.add('says who may call it', 'HttpRoute.access', async () => {
    assertAccess((await open()).access);
  });
  const answer = async (route: HttpRoute, sent: HttpRequest) => {
    try {
      await assertReply(await route.handle(sent));
    } catch (error) {
      if (request !== undefined || !(error instanceof HttpError) || error.status >= 500) throw error;
    }
  };
  contract.add('answers a request with a valid reply', 'HttpReply', async () => {
    const { route, sent } = await sample();
    await answer(route, sent);
  });
  contract.add('answers concurrent requests', 'HttpRoute 4', async () => {
    const { route, sent } = await sample();
    await Promise.all([answer(route, sent), answer(route, { ...sent })]);
  });
  contract.add('answers an unexpected JSON object, or throws an `HttpError`', 'HttpRoute 2', async () => {
    if ((await open()).body !== 'json') return;
    for (const body of [{}, { model: 7, input: {}, items: 'x', metadata: [] }, { messages: [null], id: null }]) {
      const { route, sent } = await sample({ body, rawBody: JSON.stringify(body) });
      try {
        await assertReply(await route.handle(sent));
      } catch (error) {
        const isHttpError = error instanceof HttpError;
        assert.ok(isHttpError, `the body ${JSON.stringify(body)} causes an error that is not an HttpError: ${error}`);
      }
    }
  });
  addErrorCases(contract, async () => (await open()).formatError);
  contract.add('ends soon after the caller has disconnected', 'HttpRoute 3', async () => {
    const abort = new AbortController();
    const { route, sent } = await sample({ signal: abort.signal });
    const handled = (async () => readBody((await route.handle(sent)).body))().catch(() => undefined);
    abort.abort(new Error('the caller disconnected'));
    await within(TIME_LIMIT, handled);
  });
}

/** Asserts that `access` is one of the forms that transport-http knows. */
export function assertAccess(access: Access): void {
  if (access === 'public' || access === 'page') return;
  const scopes = scopesOf(access);
  assert.ok(Array.isArray(scopes), `its access is ${JSON.stringify(access)}`);
  for (const scope of scopes) assert.ok(SCOPES.includes(scope), `its access names the unknown scope "${scope}"`);
}

async function assertReply({ status, headers = {}, body }: HttpReply): Promise<void> {
  assert.ok(Number.isInteger(status) && status >= 200 && status <= 599, `the status is ${status}`);
  for (const [name, value] of Object.entries(headers)) {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  }
  const hasType = Object.keys(headers).some((name) => name.toLowerCase() === 'content-type');
  assert.ok(hasType || typeof body !== 'string' || body === '', 'a text body needs the header content-type');
  await readBody(body);
}

/** Reads a streamed body to its end. */
async function readBody(body: HttpReply['body']): Promise<void> {
  if (typeof body !== 'object' || body === null || !(Symbol.asyncIterator in body)) return;
  for await (const part of body as AsyncIterable<unknown>) {
    const isText = typeof part === 'string' || (Array.isArray(part) && part.every((one) => typeof one === 'string'));
    assert.ok(isText || part instanceof Uint8Array, `a streamed body yields ${typeof part}`);
  }
}

async function within(limit: number, ended: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`it has not ended ${limit} ms after the abort`)), limit);
  try {
    await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}
