import type { DeclareTest } from '@plugboard/testing';
import t from 'tap';
import { type ErrorFormatter, HttpError, type HttpRoute, type HttpUpgrade } from '../../src/index.js';
import { httpRouteContract } from '../../src/testing/http-route.js';
import { httpUpgradeContract } from '../../src/testing/http-upgrade.js';

/** The names of the tests of a suite that fail. */
async function failing(declare: (test: DeclareTest) => void): Promise<readonly string[]> {
  const cases: [string, () => Promise<void>][] = [];
  declare((name, run) => cases.push([name, run]));
  const found: string[] = [];
  for (const [name, run] of cases) await run().catch(() => found.push(name));
  return found;
}

const ROUTE: HttpRoute = {
  method: 'POST',
  path: '/v1/echo',
  access: ['chat'],
  body: 'json',
  startsWork: false,
  handle: ({ body }) => ({ status: 200, body: { body } }),
};

const ofRoute = (change: Partial<HttpRoute>) =>
  failing((test) => httpRouteContract(test, { open: () => ({ ...ROUTE, ...change }), request: { body: {} } }));

const ANSWERS = 'answers a request with a valid reply';
const CONCURRENT = 'answers concurrent requests';
const INVALID = 'answers an unexpected JSON object, or throws an `HttpError`';
const ABORTED = 'ends soon after the caller has disconnected';

t.test('the suite of routes passes correct routes', async (t) => {
  t.same(await ofRoute({}), []);
  const refuses = () => {
    throw new HttpError(404, 'not found');
  };
  t.same(await failing((test) => httpRouteContract(test, { open: () => ({ ...ROUTE, handle: refuses }) })), []);
  async function* stream() {
    yield 'a';
  }
  const headers = { 'content-type': 'text/plain' };
  t.same(await ofRoute({ handle: () => ({ status: 200, headers, body: stream() }) }), []);
});

t.test('the suite of routes finds each broken promise', async (t) => {
  t.same(await ofRoute({ path: 'v1/echo' }), ['has an absolute path']);
  t.same(await ofRoute({ access: ['root' as 'chat'] }), ['says who may call it']);
  t.same(await ofRoute({ access: undefined as unknown as 'page' }), ['says who may call it']);
  t.same(await ofRoute({ handle: () => ({ status: 99 }) }), [ANSWERS, CONCURRENT, INVALID]);
  t.same(await ofRoute({ handle: () => ({ status: 200, headers: { a: 'b\nc' } }) }), [ANSWERS, CONCURRENT, INVALID]);
  t.same(await ofRoute({ handle: () => ({ status: 200, body: 'text' }) }), [ANSWERS, CONCURRENT, INVALID]);
  const unchecked: HttpRoute['handle'] = ({ body }) => {
    const { messages = [] } = body as { readonly messages?: readonly { readonly role: string }[] };
    return { status: 200, body: messages.map(({ role }) => role) };
  };
  t.same(await ofRoute({ handle: unchecked }), [INVALID]);
  let running = 0;
  const alone: HttpRoute['handle'] = async ({ body }) => {
    if (running++ > 0) throw new Error('busy');
    await Promise.resolve();
    running--;
    return { status: 200, body: { body } };
  };
  t.same(await ofRoute({ handle: alone, body: 'none' }), [CONCURRENT]);
  const hangs: HttpRoute['handle'] = ({ signal }) =>
    new Promise((resolve) => setTimeout(() => signal.aborted || resolve({ status: 200 }), 5));
  t.same(await ofRoute({ handle: hangs }), [ABORTED]);
});

t.test('the suite of upgrades finds each broken promise', async (t) => {
  const upgrade: HttpUpgrade = { path: '/v1/live', access: ['chat'], handle: () => {} };
  const found = (change: Partial<HttpUpgrade>) =>
    failing((test) => httpUpgradeContract(test, { open: () => ({ ...upgrade, ...change }) }));
  t.same(await found({}), []);
  t.same(await found({ path: '/v1/:id' }), ['has an absolute path without parameters']);
  t.same(await found({ access: 'page' as unknown as ['chat'] }), ['names the scopes that a credential needs']);
  t.same(await found({ handle: undefined as unknown as () => void }), ['handles requests with a function']);
});

t.test('the suites of routes and upgrades find each broken promise of their error formats', async (t) => {
  const upgrade: HttpUpgrade = { path: '/v1/live', access: ['chat'], handle: () => {} };
  const suites = [
    ofRoute,
    (change: object) => failing((test) => httpUpgradeContract(test, { open: () => ({ ...upgrade, ...change }) })),
  ];
  for (const found of suites) {
    const of = (formatError: ErrorFormatter) => found({ formatError });
    t.same(await of(({ message, code }) => ({ body: { message, code } })), []);
    t.same(await of(({ message, code }) => ({ body: `${code}: ${message}` as unknown as object })), [
      'formats every error as an object, with or without a code',
    ]);
    t.same(await of(({ code }) => ({ body: { code } })), ['keeps the message of an error']);
    t.same(await of(({ message, code, stack }) => ({ body: { message, code, stack } })), ['shows no stack of an error']);
  }
});
