import t from 'tap';
import type { HttpRoute } from '../../src/index.js';
import { RouteTable } from '../../src/routing/route-table.js';
import { errorOf, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const route = (more: Partial<HttpRoute>): HttpRoute => ({
  method: 'POST',
  path: '/v1/files',
  access: [],
  body: 'none',
  startsWork: false,
  handle: ({ method, body, rawBody }) => ({ status: 200, body: { method, body: body ?? null, rawBody } }),
  ...more,
});

t.test('routes use every method, and the Allow header and preflights name them', async (t) => {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
  const { url } = await serve(t, { routes: methods.map((method) => route({ method, path: `/v1/${method}` })) });
  for (const method of methods) {
    const reply = await fetch(`${url}/v1/${method}`, { method });
    t.match(await reply.json(), { method });
  }
  const other = await fetch(`${url}/v1/PATCH`, { method: 'PUT' });
  t.strictSame([other.status, other.headers.get('allow')], [405, 'PATCH, OPTIONS']);
});

t.test('a route with `bytes` receives the body as it was sent', async (t) => {
  const handle: HttpRoute['handle'] = ({ body }) => ({
    status: 200,
    headers: { 'content-type': 'application/octet-stream' },
    body: body as Uint8Array,
  });
  const { url } = await serve(t, { routes: [route({ method: 'PUT', body: 'bytes', handle })], config: { bodyLimit: '1kb' } });
  const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
  const put = (body: Uint8Array<ArrayBuffer> | undefined, type?: string) =>
    fetch(`${url}/v1/files`, {
      method: 'PUT',
      ...(body && { body }),
      headers: type === undefined ? {} : { 'content-type': type },
    });
  for (const type of ['image/png', 'application/json', 'multipart/form-data; boundary=x']) {
    const reply = await put(bytes, type);
    t.strictSame(new Uint8Array(await reply.arrayBuffer()), bytes, type);
  }
  t.match(await errorOf(await put(bytes)), { message: 'The request must have a body and the header "Content-Type".' });
  t.equal((await put(new Uint8Array(2000), 'image/png')).status, 413);
});

t.test('a body that does not match the schema of its route gets 400 with the first mistake', async (t) => {
  const schema = {
    type: 'object',
    required: ['items'],
    additionalProperties: false,
    properties: { items: { type: 'array', items: { type: 'object', properties: { kind: { enum: ['a', 'b'] } } } } },
  };
  const { url } = await serve(t, { routes: [route({ body: 'json', schema })] });
  const answer = async (body: unknown) => postJson(`${url}/v1/files`, JSON.stringify(body));
  t.equal((await answer({ items: [{ kind: 'a' }] })).status, 200);
  const mistakes = {
    '{}': 'it must have the property "items"',
    '{"items":5}': '"items" must be an array, not 5',
    '{"items":[{},{"kind":"c"}]}': '"items[1].kind" must be "a" or "b", not "c"',
    '{"items":[],"more":1}': 'it must not have the property "more"',
  };
  for (const [body, mistake] of Object.entries(mistakes)) {
    const reply = await postJson(`${url}/v1/files`, body);
    t.equal(reply.status, 400);
    t.match(await errorOf(reply), { code: 'invalid_body', message: `The request body is invalid: ${mistake}.` });
  }
});

t.test('an invalid schema is reported with its entry and route', async (t) => {
  const value = route({ body: 'json', schema: { type: 'strng' } });
  t.throws(() => new RouteTable([{ name: 'x', value, entry: 'transports.files', shared: {} }]), {
    message: /^transports.files: the schema of POST \/v1\/files is invalid: /,
  });
});
