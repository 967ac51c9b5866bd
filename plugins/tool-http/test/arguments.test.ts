import t from 'tap';
import { api, documentOf, entry } from './api.js';

const text = { type: 'string' } as const;
const json = (schema: object, required = true) => ({ required, content: { 'application/json': { schema } } });

t.test('OAS-6 arguments have the names of parameters and of the properties of the body', async (t) => {
  const { url, requests } = await api(t);
  const shop = entry(
    t,
    documentOf({
      '/orders/{id}': {
        parameters: [{ name: 'id', in: 'path', required: true, description: 'Number of the order', schema: text }],
        put: {
          operationId: 'put',
          parameters: [
            { name: 'id', in: 'query', schema: text },
            { name: 'id', in: 'header', schema: text },
            { name: 'dry', in: 'query', required: true, schema: { type: 'boolean' } },
          ],
          requestBody: json({
            type: 'object',
            required: ['id', 'note'],
            properties: { id: text, note: { ...text, description: 'N'.repeat(2000) }, size: { type: 'integer' } },
          }),
        },
      },
    }),
    { baseUrl: url },
  );
  t.strictSame(Object.keys(shop.properties('put')), ['path_id', 'query_id', 'header_id', 'dry', 'body_id', 'note', 'size']);
  t.equal(shop.properties('put').path_id?.description, 'Number of the order');
  t.equal(String(shop.properties('put').note?.description).length, 1024);
  t.strictSame(shop.required('put'), ['path_id', 'dry', 'body_id', 'note']);
  const input = { path_id: 'p', query_id: 'q', header_id: 'h', dry: true, body_id: 'b', note: 'n' };
  await shop.call('put', input);
  t.match(requests[0], {
    method: 'PUT',
    url: '/orders/p?id=q&dry=true',
    headers: { id: 'h', 'content-type': 'application/json' },
    body: '{"id":"b","note":"n"}',
  });
});

t.test('OAS-6 names that meet a name with its place stay apart', async (t) => {
  const { url, requests } = await api(t);
  const at = (name: string, place: string) => ({ name, in: place, schema: text });
  const parameters = [at('id', 'query'), at('id', 'header'), at('query_id', 'query'), at('header_id', 'header')];
  const shop = entry(t, documentOf({ '/a': { get: { parameters } } }), { baseUrl: url });
  const names = Object.keys(shop.properties('get_a'));
  t.equal(new Set(names).size, 4);
  await shop.call('get_a', Object.fromEntries(names.map((name, index) => [name, String(index)])));
  t.match(requests[0], { url: '/a?id=0&query_id=2', headers: { id: '1', header_id: '3' } });
});

t.test('OAS-6 another body is the argument body; forms are sent; what is neither is skipped', async (t) => {
  const { url, requests } = await api(t);
  const form = (schema: object, encoding?: object) => ({
    content: { 'application/x-www-form-urlencoded': { schema, encoding }, 'multipart/form-data': { schema } },
  });
  const shop = entry(
    t,
    documentOf({
      '/list': { post: { requestBody: json({ type: 'array', items: text }) } },
      '/choice': { post: { requestBody: json({ oneOf: [{ type: 'object', properties: { a: text } }, text] }) } },
      '/map': { post: { requestBody: json({ type: 'object', additionalProperties: text }) } },
      '/open': { post: { requestBody: json({ type: 'object', properties: { a: text }, additionalProperties: true }) } },
      '/optional': { post: { requestBody: json({ type: 'object', required: ['a'], properties: { a: text } }, false) } },
      '/patch': {
        patch: {
          requestBody: { content: { 'application/merge-patch+json': { schema: { type: 'object', properties: { a: text } } } } },
        },
      },
      '/form': {
        post: {
          requestBody: form(
            {
              type: 'object',
              properties: { 'a b': text, list: { type: 'array' }, plain: { type: 'object' }, deep: { type: 'object' } },
            },
            { deep: { style: 'deepObject' } },
          ),
        },
      },
      '/upload': { post: { operationId: 'upload', requestBody: { content: { 'multipart/form-data': {} } } } },
      '/xml': { post: { operationId: 'xml', requestBody: { content: { 'application/xml': {} } } } },
    }),
    { baseUrl: url },
  );
  const sent = async (name: string, input: Record<string, unknown>) => {
    await shop.call(name, input);
    const { headers, body } = requests.at(-1) ?? { headers: {}, body: '' };
    return [headers['content-type'], body];
  };
  t.strictSame(await sent('post_list', { body: ['x'] }), ['application/json', '["x"]']);
  t.strictSame(await sent('post_choice', { body: { a: 'x' } }), ['application/json', '{"a":"x"}']);
  t.strictSame(await sent('post_map', { body: { any: 'x' } }), ['application/json', '{"any":"x"}']);
  t.strictSame(await sent('post_open', { a: 'x', more: 'y' }), ['application/json', '{"a":"x","more":"y"}']);
  t.strictSame(await sent('post_optional', {}), [undefined, '']);
  t.strictSame(await sent('post_optional', { a: 'x' }), ['application/json', '{"a":"x"}']);
  t.strictSame(await sent('patch_patch', { a: 'x' }), ['application/merge-patch+json', '{"a":"x"}']);
  const [spaced = ''] = Object.keys(shop.properties('post_form'));
  t.match(spaced, /^a_b_[0-9a-f]{6}$/);
  t.strictSame(await sent('post_form', { [spaced]: 'ü&=', list: [1, 2], plain: { x: 1 }, deep: { x: { y: [1, 2] } } }), [
    'application/x-www-form-urlencoded',
    'a%20b=%C3%BC%26%3D&list=1&list=2&plain=%7B%22x%22%3A1%7D&deep%5Bx%5D%5By%5D%5B0%5D=1&deep%5Bx%5D%5By%5D%5B1%5D=2',
  ]);
  t.strictSame(await shop.skipped(), [
    'upload: an operation was skipped: its body is multipart/form-data; only JSON and application/x-www-form-urlencoded can be sent',
    'xml: an operation was skipped: its body is application/xml; only JSON and application/x-www-form-urlencoded can be sent',
  ]);
});

t.test('OAS-5 keys that providers refuse have an alias, at any depth', async (t) => {
  const { url, requests } = await api(t);
  const body = {
    type: 'object',
    properties: { 'a.b': { type: 'object', required: ['c d'], properties: { 'c d': text } }, ['x'.repeat(65)]: text },
  };
  const parameters = [{ name: 'filter[name]', in: 'query', schema: text }];
  const shop = entry(t, documentOf({ '/a': { post: { parameters, requestBody: json(body) } } }), { baseUrl: url });
  const schema = shop.tool('post_a').inputSchema;
  const keys = Array.from(JSON.stringify(schema).matchAll(/"([^"]*)":\{/g), ([, key = '']) => key);
  for (const key of keys) t.match(key, /^[A-Za-z0-9_-]{1,64}$/);
  const [filter = '', ab = '', long = ''] = Object.keys(shop.properties('post_a'));
  const [cd = ''] = (shop.properties('post_a')[ab]?.required ?? []) as string[];
  await shop.call('post_a', { [filter]: 'n', [ab]: { [cd]: 'v' }, [long]: 'l' });
  t.match(requests[0], { url: '/a?filter%5Bname%5D=n', body: `{"a.b":{"c d":"v"},"${'x'.repeat(65)}":"l"}` });
});

t.test('OAS-9 servers, host, Authorization, credentials and headers of the file are not arguments', async (t) => {
  const { url, requests } = await api(t);
  const at = (name: string, place: string) => ({ name, in: place, schema: text });
  const shop = entry(
    t,
    documentOf(
      {
        '/a': {
          get: {
            servers: [{ url: 'http://elsewhere.example.com' }],
            parameters: [
              ...[
                'Authorization',
                'Host',
                'Content-Type',
                'Accept',
                'Cookie',
                'Content-Length',
                'X-API-Key',
                'X-Org',
                'X-Free',
              ].map((name) => at(name, 'header')),
              ...['api_key', 'free'].map((name) => at(name, 'query')),
              ...['sid', 'free'].map((name) => at(name, 'cookie')),
            ],
          },
        },
      },
      {
        components: {
          securitySchemes: {
            a: { type: 'apiKey', in: 'header', name: 'x-api-key' },
            b: { type: 'apiKey', in: 'query', name: 'api_key' },
            c: { type: 'apiKey', in: 'cookie', name: 'sid' },
          },
        },
      },
    ),
    { baseUrl: `${url}?api_key=of-the-file`, headers: { 'x-org': 'ours' } },
  );
  t.strictSame(Object.keys(shop.properties('get_a')), ['X-Free', 'query_free', 'cookie_free']);
  const hostile = {
    authorization: 'x',
    Authorization: 'x',
    host: 'evil',
    'X-Org': 'theirs',
    api_key: 'x',
    sid: 'x',
    server: 'http://evil',
  };
  await shop.call('get_a', { ...hostile, 'X-Free': '1', query_free: '2', cookie_free: '3' });
  t.match(requests[0], {
    url: '/a?api_key=of-the-file&free=2',
    headers: { 'x-org': 'ours', 'x-free': '1', cookie: 'free=3', host: new URL(url).host },
  });
  t.equal(requests[0]?.headers.authorization, undefined);
});

t.test('OAS-9 a call goes to the server of the operation, its path or the document, with its defaults', async (t) => {
  const { url, port, requests } = await api(t);
  const [, rest] = url.split('//');
  const server = (path: string) => [
    { url: `{scheme}://${rest}/{base}/${path}`, variables: { scheme: { default: 'http' }, base: { default: 'v2' } } },
  ];
  const shop = entry(
    t,
    documentOf(
      { '/a': { servers: server('path'), get: { servers: server('operation') }, put: {} }, '/b': { get: {} } },
      { servers: [...server('document/'), { url: 'http://other.example.com' }] },
    ),
    { allowPrivate: [`127.0.0.1:${port}`] },
  );
  for (const name of ['get_a', 'put_a', 'get_b']) await shop.call(name);
  t.strictSame(
    requests.map(({ url }) => url),
    ['/v2/operation/a', '/v2/path/a', '/v2/document/b'],
  );
});

t.test('OAS-11 a default is sent only if the parameter is required', async (t) => {
  const at = (name: string, required: boolean) => ({ name, in: 'query', required, schema: { type: 'integer', default: 20 } });
  const parameters = [at('limit', false), at('page', true)];
  const body = json({ type: 'object', properties: { kind: { ...text, default: 'new' } } });
  const shop = entry(t, documentOf({ '/a': { post: { parameters, requestBody: body } } }), { baseUrl: 'https://a.example.com' });
  t.strictSame(shop.properties('post_a'), {
    limit: { type: 'integer', description: 'Default: 20.' },
    page: { type: 'integer', description: 'Default: 20.', default: 20 },
    kind: { type: 'string', description: 'Default: "new".' },
  });
});

t.test('a parameter of the path that the document does not describe is a required text', async (t) => {
  const shop = entry(t, documentOf({ '/a/{id}.{format}': { get: {} } }), { baseUrl: 'https://a.example.com' });
  t.strictSame(shop.tool('get_a_id_format').inputSchema, {
    type: 'object',
    properties: { id: text, format: text },
    required: ['id', 'format'],
    additionalProperties: false,
  });
});
