import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { api, documentOf, entry } from './api.js';

const list = ['blue', 'black'];
const object = { R: 100, G: 200 };

/** Parameters with the part of the request that the tables of OpenAPI say. */
const TABLE: readonly (readonly [place: string, parameter: object, value: unknown, sent: string])[] = [
  ['path', {}, 'blue', 'blue'],
  ['path', {}, 5, '5'],
  ['path', {}, list, 'blue,black'],
  ['path', {}, object, 'R,100,G,200'],
  ['path', { explode: true }, list, 'blue,black'],
  ['path', { explode: true }, object, 'R=100,G=200'],
  ['path', { style: 'label' }, 'blue', '.blue'],
  ['path', { style: 'label' }, list, '.blue,black'],
  ['path', { style: 'label' }, object, '.R,100,G,200'],
  ['path', { style: 'label', explode: true }, list, '.blue.black'],
  ['path', { style: 'label', explode: true }, object, '.R=100.G=200'],
  ['path', { style: 'matrix' }, 'blue', ';p=blue'],
  ['path', { style: 'matrix' }, list, ';p=blue,black'],
  ['path', { style: 'matrix' }, object, ';p=R,100,G,200'],
  ['path', { style: 'matrix', explode: true }, list, ';p=blue;p=black'],
  ['path', { style: 'matrix', explode: true }, object, ';R=100;G=200'],
  ['path', { content: { 'application/json': {} } }, object, '%7B%22R%22%3A100%2C%22G%22%3A200%7D'],
  ['query', {}, 'a b&c=d/é', 'p=a%20b%26c%3Dd%2F%C3%A9'],
  ['query', {}, '', 'p='],
  ['query', {}, false, 'p=false'],
  ['query', {}, 1e21, 'p=1e%2B21'],
  ['query', {}, list, 'p=blue&p=black'],
  ['query', {}, object, 'R=100&G=200'],
  ['query', {}, [], ''],
  ['query', {}, null, ''],
  ['query', {}, [{ a: 1 }], 'p=%7B%22a%22%3A1%7D'],
  ['query', { explode: false }, list, 'p=blue,black'],
  ['query', { explode: false }, ['a,b', 'c'], 'p=a%2Cb,c'],
  ['query', { explode: false }, object, 'p=R,100,G,200'],
  ['query', { style: 'spaceDelimited', explode: false }, list, 'p=blue%20black'],
  ['query', { style: 'spaceDelimited' }, object, 'p=R%20100%20G%20200'],
  ['query', { style: 'pipeDelimited', explode: false }, list, 'p=blue%7Cblack'],
  ['query', { style: 'pipeDelimited' }, object, 'p=R%7C100%7CG%7C200'],
  ['query', { style: 'deepObject' }, object, 'p%5BR%5D=100&p%5BG%5D=200'],
  ['query', { style: 'deepObject' }, { a: { b: [1, null, 'x'] } }, 'p%5Ba%5D%5Bb%5D%5B0%5D=1&p%5Ba%5D%5Bb%5D%5B2%5D=x'],
  ['query', { allowReserved: true }, "/a:b?c@d!$'()*,;", "p=/a:b?c@d!$'()*,;"],
  ['query', { allowReserved: true }, 'a&admin=1#x+y[z] %', 'p=a%26admin%3D1%23x%2By%5Bz%5D%20%25'],
  ['query', { content: { 'application/json': {} } }, object, 'p=%7B%22R%22%3A100%2C%22G%22%3A200%7D'],
  ['header', {}, 'blue', 'blue'],
  ['header', {}, list, 'blue,black'],
  ['header', {}, object, 'R,100,G,200'],
  ['header', { explode: true }, object, 'R=100,G=200'],
  ['header', { content: { 'application/json': {} } }, object, '{"R":100,"G":200}'],
  ['cookie', {}, 'b;c=d', 'p=b%3Bc%3Dd'],
  ['cookie', {}, list, 'p=blue; p=black'],
  ['cookie', { explode: false }, list, 'p=blue,black'],
  ['cookie', { style: 'cookie' }, 'a/b', 'p=a/b'],
  ['querystring', { content: { 'application/x-www-form-urlencoded': {} } }, { a: 'x y', b: [1, 2] }, 'a=x%20y&b=1&b=2'],
  ['querystring', { content: { 'application/json': {} } }, { a: 1 }, '%7B%22a%22%3A1%7D'],
  ['querystring', { content: { 'text/plain': {} } }, 'a=b', 'a%3Db'],
];

t.test('OAS-11 the request is what the document says, for every place, style and value', async (t) => {
  const { url, requests } = await api(t);
  for (const [place, parameter, value, sent] of TABLE) {
    const path = place === 'path' ? '/a/{p}' : '/a';
    const parameters = [{ name: 'p', in: place, schema: {}, ...parameter }];
    const shop = entry(t, documentOf({ [path]: { get: { operationId: 'get', parameters } } }), { baseUrl: url });
    await shop.call('get', { p: value });
    const { url: target = '', headers = {} } = requests.at(-1) ?? {};
    const received =
      place === 'path'
        ? target.slice('/a/'.length)
        : place === 'header' || place === 'cookie'
          ? headers[place === 'header' ? 'p' : 'cookie']
          : target.slice('/a?'.length);
    t.equal(received, sent, `${place} ${JSON.stringify(parameter)} ${JSON.stringify(value)}`);
  }
});

t.test('OAS-14 query, additionalOperations and in: querystring of 3.2', async (t) => {
  const { url, requests } = await api(t);
  const shop = entry(
    t,
    {
      ...documentOf({
        '/a': {
          query: { operationId: 'search', requestBody: { content: { 'application/json': { schema: { type: 'string' } } } } },
          additionalOperations: { LINK: { operationId: 'link' }, CONNECT: { operationId: 'connect' }, 'B AD': {} },
        },
      }),
      openapi: '3.2.0',
    },
    { baseUrl: url },
  );
  t.strictSame(shop.names(), ['search', 'link']);
  t.equal(shop.tool('search').effect, 'read');
  await shop.call('search', { body: 'x' });
  await shop.call('link');
  t.match(requests, [
    { method: 'QUERY', body: '"x"' },
    { method: 'LINK', url: '/a' },
  ]);
  t.match(await shop.skipped(), [/connect: .*its method cannot be sent/, /B AD .*: .*its method cannot be sent/]);
});

t.test('OAS-7 no value of a path changes the path or the host', async (t) => {
  const { url, requests } = await api(t);
  const paths = { '/users/{id}/files/{name}.txt': { get: { operationId: 'get' } }, '/x/{id}': { get: { operationId: 'one' } } };
  const shop = entry(t, documentOf(paths), { baseUrl: `${url}/v1` });
  const attacks = [
    '../../admin',
    '..\\..\\admin',
    '/etc',
    '//evil.example.com/',
    'a?admin=1',
    'a#b',
    '%2e%2e',
    '%2f',
    '@evil.example.com',
    ':80',
    'a;b=c',
    '\r\nHost: evil',
    '\u0000',
    '\ud800',
    'a b',
    '..%00',
    '．．',
  ];
  for (const attack of attacks) {
    await shop.call('get', { id: attack, name: attack });
    const { url: target = '', headers } = requests.at(-1) ?? { headers: {} };
    t.equal(headers.host, new URL(url).host);
    t.equal(new URL(target, url).pathname, target, attack);
    const steps = target.split('/');
    t.strictSame([steps.length, ...steps.slice(0, 3), steps[4]], [6, '', 'v1', 'users', 'files'], attack);
    t.equal(decodeURIComponent(steps[3] ?? ''), attack.toWellFormed());
  }
  const before = requests.length;
  for (const id of ['', '.', '..', [], {}, null])
    await t.rejects(shop.call('one', { id }), {
      code: 'http_arguments',
      message: /^the argument "id" (is part of the path|cannot be)/,
    });
  await t.rejects(shop.call('one', {}), { code: 'http_arguments' });
  t.equal(requests.length, before);
});

t.test('OAS-7 values that together are a step ".." are refused', async (t) => {
  const { url, requests } = await api(t);
  const label = { name: 'b', in: 'path', style: 'label', schema: {} };
  const paths = {
    '/x/{a}{c}': { get: { operationId: 'two' } },
    '/y/{b}': { get: { operationId: 'label', parameters: [label] } },
  };
  const shop = entry(t, documentOf(paths), { baseUrl: url });
  await t.rejects(shop.call('two', { a: '.', c: '.' }), { code: 'http_arguments' });
  await t.rejects(shop.call('label', { b: '.' }), { code: 'http_arguments' });
  t.equal(requests.length, 0);
});

t.test('OAS-7 whatever the arguments are, the request has the steps of the document', async () => {
  const { url, requests } = await api(t);
  const paths = { '/a/{id}/b': { get: { operationId: 'get', parameters: [{ name: 'q', in: 'query', schema: {} }] } } };
  const shop = entry(t, documentOf(paths), { baseUrl: url });
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), fc.jsonValue(), async (id, q) => {
      const count = requests.length;
      const isSent = await shop.call('get', { id, q }).then(
        () => true,
        (error: { code?: string }) => error.code !== 'http_arguments',
      );
      if (!isSent) return assert.equal(requests.length, count);
      const [, a, step = '', b] = requests.at(-1)?.url.split('?')[0]?.split('/') ?? [];
      assert.deepEqual([a, decodeURIComponent(step), b], ['a', id.toWellFormed(), 'b']);
    }),
    { numRuns: 200, seed: 1 },
  );
});

t.test('headers and cookies with line breaks or separators are refused', async (t) => {
  const { url, requests } = await api(t);
  const parameters = [
    { name: 'h', in: 'header', schema: {} },
    { name: 'c', in: 'cookie', style: 'cookie', schema: {} },
  ];
  const shop = entry(t, documentOf({ '/a': { get: { parameters } } }), { baseUrl: url });
  for (const h of ['a\r\nx: y', 'a\nb', '\u0000', '😀'])
    await t.rejects(shop.call('get_a', { h }), { message: 'the argument "h" has characters that a header cannot have' });
  for (const c of ['a; sid=1', 'a b', 'a;b', '"', 'é'])
    await t.rejects(shop.call('get_a', { c }), { message: 'the argument "c" has characters that a cookie cannot have' });
  t.equal(requests.length, 0);
});

t.test('R-041 arguments that are nested a hundred thousand levels deep fail the call', async (t) => {
  const { url, requests } = await api(t);
  const body = { content: { 'application/json': { schema: { type: 'array' } } } };
  const parameters = [{ name: 'q', in: 'query', style: 'deepObject', schema: {} }];
  const shop = entry(t, documentOf({ '/a': { post: { parameters, requestBody: body } } }), { baseUrl: url });
  let deep: unknown = 1;
  for (let at = 0; at < 100_000; at++) deep = [deep];
  const refusal = { code: 'http_arguments', message: 'the arguments are nested too deeply to be sent' };
  await t.rejects(shop.call('post_a', { body: deep }), refusal);
  await t.rejects(shop.call('post_a', { q: deep }), refusal);
  t.equal(requests.length, 0);
});
