import t from 'tap';
import { HttpError } from '../../src/index.js';
import { get, post } from '../support/routes.js';
import { serve } from '../support/serve.js';

const says = (name: string) => () => ({ status: 200, body: { name } });

t.test('a route with a condition serves what meets it, wherever it is in the file', async (t) => {
  const { url } = await serve(t, {
    routes: [
      get('/v1/things', says('plain')),
      { ...get('/v1/things', says('header')), when: ({ headers }) => 'x-version' in headers },
      { ...get('/v1/things', says('query')), when: ({ query }) => query.has('limit') },
      get('/v1/things/*id', says('one')),
      {
        ...get('/v1/things/*id', ({ params }) => ({ status: 200, body: { name: `header ${params.id}` } })),
        when: ({ headers }) => 'x-version' in headers,
      },
    ],
  });
  const nameAt = async (path: string, headers = {}) =>
    ((await (await fetch(url + path, { headers })).json()) as { name: string }).name;
  for (let round = 0; round < 2; round++) {
    t.equal(await nameAt('/v1/things'), 'plain');
    t.equal(await nameAt('/v1/things', { 'x-version': '1' }), 'header');
    t.equal(await nameAt('/v1/things?limit=1'), 'query');
    t.equal(await nameAt('/v1/things/a/b'), 'one');
    t.equal(await nameAt('/v1/things/a/b', { 'x-version': '1' }), 'header a/b');
  }
});

t.test('two routes without a condition cannot share a path', async (t) => {
  await t.rejects(
    serve(t, { routes: [get('/v1/things', says('a')), get('/v1/things', says('b'))] }),
    /both serve GET \/v1\/things/,
  );
});

t.test('a path for HEAD alone is unknown to other methods, and comes before the GET of another entry', async (t) => {
  const head = (path: string, status: number) => ({
    ...get(path, () => ({ status })),
    method: 'HEAD' as const,
    access: 'page' as const,
  });
  const { url } = await serve(t, { routes: [get('/both', says('both')), head('/both', 204), head('/probe', 200)] });
  t.equal((await fetch(`${url}/probe`, { method: 'HEAD' })).status, 200);
  for (const method of ['GET', 'POST', 'OPTIONS']) t.equal((await fetch(`${url}/probe`, { method })).status, 404, method);
  t.equal((await fetch(`${url}/both`, { method: 'HEAD' })).status, 204);
  t.equal((await fetch(`${url}/both`)).status, 200);
});

t.test('a format decides about status and headers, and is that of the path for other methods', async (t) => {
  const refused = () => {
    throw new HttpError(503, 'no', { headers: { 'retry-after': '2' } });
  };
  const formatError = ({ status, message }: HttpError, requestId: string) => ({
    status: status === 503 ? 529 : status,
    headers: { 'request-id': requestId },
    body: { own: message },
  });
  const { url } = await serve(t, { routes: [get('/first', says('x')), { ...post('/own', refused), formatError }] });
  const reply = await fetch(`${url}/own`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  t.strictSame([reply.status, await reply.json()], [529, { own: 'no' }]);
  t.equal(reply.headers.get('retry-after'), '2');
  t.equal(reply.headers.get('request-id'), reply.headers.get('x-request-id'));
  const other = await fetch(`${url}/own`);
  t.strictSame([other.status, await other.json()], [405, { own: 'Only POST requests are accepted.' }]);
});
