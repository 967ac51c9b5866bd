import { join } from 'node:path';
import { ToolSources } from '@plugboard/kernel';
import { pluginContract, toolSourceContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { api, documentOf, entry, folderWith, textOf } from './api.js';

const SHOP = documentOf({
  '/orders': {
    get: { operationId: 'listOrders', summary: 'Lists orders', tags: ['orders'] },
    post: {
      operationId: 'createOrder',
      requestBody: { content: { 'application/json': { schema: { type: 'object', properties: { sku: { type: 'string' } } } } } },
    },
  },
  '/orders/{id}': {
    get: { tags: ['orders'], parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] },
    put: { operationId: 'replaceOrder' },
    delete: { operationId: 'deleteOrder' },
    patch: { operationId: 'changeOrder' },
    head: { operationId: 'hasOrder' },
    options: { operationId: 'optionsOfOrder' },
  },
});

t.test('fulfils the plugin contract', async (t) => {
  const openapi = join(folderWith(t, { 'shop.json': JSON.stringify(SHOP) }), 'shop.json');
  const config = { openapi, baseUrl: 'https://shop.example.com' };
  pluginContract(t.test, plugin, { config, packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the tool source contract', async (t) => {
  const { url } = await api(t);
  const calls = [
    { tool: 'listOrders', input: {} },
    { tool: 'get_orders_id', input: { id: '7' } },
  ] as const;
  toolSourceContract(t.test, { open: () => entry(t, SHOP, { baseUrl: url }).source, calls });
});

t.test('without a selection all operations are tools; with one, those of the ids and of the tags', async (t) => {
  const config = { baseUrl: 'https://shop.example.com' };
  t.strictSame(entry(t, SHOP, config).names(), [
    'listOrders',
    'createOrder',
    'get_orders_id',
    'replaceOrder',
    'deleteOrder',
    'optionsOfOrder',
    'hasOrder',
    'changeOrder',
  ]);
  t.strictSame(entry(t, SHOP, { ...config, operations: ['createOrder'] }).names(), ['createOrder']);
  t.strictSame(entry(t, SHOP, { ...config, tags: ['orders'] }).names(), ['listOrders', 'get_orders_id']);
  t.strictSame(entry(t, SHOP, { ...config, tags: ['orders'], operations: ['get_orders_id', 'createOrder'] }).names(), [
    'listOrders',
    'createOrder',
    'get_orders_id',
  ]);
});

t.test('listings count the tools that an entry offers before the start', async (t) => {
  const shop = entry(t, SHOP, { baseUrl: 'https://shop.example.com' });
  t.strictSame(ToolSources.describe?.(shop.source), [{ kind: 'detail', label: 'tools', text: '8' }]);
  const others = [
    { single: true, tools: () => [] },
    { tools: () => Promise.reject(new Error('not now')) },
    {
      tools: () => {
        throw new Error('not now');
      },
    },
  ];
  for (const source of others) t.strictSame(ToolSources.describe?.(source), []);
});

t.test('OAS-4 an operation without an id is named by its method and path, and names stay apart', async (t) => {
  const operation = (operationId?: string) => ({ get: { operationId } });
  const shop = entry(
    t,
    documentOf({
      '/': operation(),
      '/a/b': operation(),
      '/a_b': operation(),
      '/a-b': operation(),
      '/x': operation('repos/list'),
      '/y': operation('repos_list'),
      '/z': operation('repos list'),
      '/long': operation('l'.repeat(100)),
      '/twice': operation('repos/list'),
      '/huge': operation('h'.repeat(300)),
      '/spaces': operation('  '),
    }),
    { baseUrl: 'https://shop.example.com' },
  );
  const names = shop.names();
  t.match(names[0], /^get$/);
  t.match(names[1], /^get_a_b_[0-9a-f]{8}$/);
  t.match(names[2], /^get_a_b_[0-9a-f]{8}$/);
  t.equal(names[3], 'get_a-b');
  t.match(names[4], /^repos_list_[0-9a-f]{8}$/);
  t.equal(names[5], 'repos_list');
  t.match(names[6], /^repos_list_[0-9a-f]{8}$/);
  t.equal(names[8], 'get_spaces');
  t.equal(new Set(names.map((name) => name.replace(/[^A-Za-z0-9_-]/g, '_'))).size, names.length);
  t.strictSame(shop.logs, [], 'a command that only registers the entry says nothing');
  t.strictSame(await shop.skipped(), [
    'repos/list: an operation was skipped: an earlier operation has the same operationId',
    `${'h'.repeat(200)}: an operation was skipped: its operationId has more than 256 characters`,
  ]);
});

t.test('the log names ten of the operations that are skipped, and counts the others', async (t) => {
  const paths = Array.from({ length: 12 }, (_, at) => [`/${at}`, { get: { operationId: 'x'.repeat(300) } }]);
  const shop = entry(t, documentOf(Object.fromEntries(paths)), { baseUrl: 'https://shop.example.com' });
  t.equal((await shop.skipped()).length, 11);
  t.match(shop.logs.slice(-2), [{ msg: '2 more operations were skipped' }, { msg: 'the OpenAPI document offers no tools' }]);
});

t.test('OAS-13 the method decides the effect, and all but read calls carry the key of the call', async (t) => {
  const { url, requests } = await api(t);
  const shop = entry(t, SHOP, { baseUrl: url });
  const effects = {
    listOrders: 'read',
    createOrder: 'write',
    get_orders_id: 'read',
    replaceOrder: 'idempotent',
    deleteOrder: 'idempotent',
    optionsOfOrder: 'read',
    hasOrder: 'read',
    changeOrder: 'write',
  } as const;
  for (const [name, effect] of Object.entries(effects)) {
    t.equal(shop.tool(name).effect, effect, name);
    t.equal(shop.tool(name).keyed, false, name);
    await shop.call(name, { id: '7' }, { turnId: 'turn_9', index: 3 });
    t.equal(requests.at(-1)?.headers['idempotency-key'], effect === 'read' ? undefined : 'turn_9/3', name);
  }
});

t.test('OAS-13 an Idempotency-Key of the document is an argument; without a value the key of the call is sent', async (t) => {
  const { url, requests } = await api(t);
  const parameters = [{ name: 'Idempotency-Key', in: 'header', required: true, schema: { type: 'string' } }];
  const shop = entry(t, documentOf({ '/pay': { post: { operationId: 'pay', parameters } } }), { baseUrl: url });
  t.strictSame(shop.required('pay'), undefined);
  t.equal(shop.tool('pay').keyed, true);
  await shop.call('pay', { 'Idempotency-Key': 'mine' });
  await shop.call('pay', {}, { turnId: 'turn_9', index: 3 });
  t.strictSame(
    requests.map(({ headers }) => headers['idempotency-key']),
    ['mine', 'turn_9/3'],
  );
});

t.test('a call carries the headers of the trace and those of the file', async (t) => {
  const { url, requests } = await api(t);
  const shop = entry(t, SHOP, { baseUrl: `${url}/v1/`, headers: { Authorization: 'Bearer secret-of-shop', 'User-Agent': 'us' } });
  await shop.call('listOrders', {}, { headers: { traceparent: '00-1-2-01' } });
  t.match(requests[0], {
    method: 'GET',
    url: '/v1/orders',
    headers: { traceparent: '00-1-2-01', authorization: 'Bearer secret-of-shop', 'user-agent': 'us', accept: /json/ },
  });
});

t.test('a description is the summary and the description, cut', async (t) => {
  const paths = { '/a': { get: { summary: 'Short', description: 'Long. '.repeat(500) } }, '/b': { get: {} } };
  const shop = entry(t, documentOf(paths), { baseUrl: 'https://shop.example.com' });
  t.match(shop.tool('get_a').description, /^Short\n\nLong\. /);
  t.equal(shop.tool('get_a').description.length, 1024);
  t.equal(shop.tool('get_b').description, 'GET /b');
});

t.test('a document at a URL is read at the start and on reload, without the headers of the API', async (t) => {
  let document: unknown = SHOP;
  const { url, requests } = await api(t, (response) => response.end(JSON.stringify(document)));
  const shop = entry(t, '', { openapi: `${url}/openapi.json`, headers: { Authorization: 'Bearer secret-of-shop' } });
  t.strictSame(shop.names(), []);
  const { signal } = new AbortController();
  await shop.lifecycle.start?.(signal);
  t.equal(shop.names().length, 8);
  t.equal(requests[0]?.headers.authorization, undefined);
  // Relative servers are relative to the document.
  await shop.call('listOrders');
  t.match(requests[1], { url: '/orders', headers: { authorization: 'Bearer secret-of-shop' } });
  document = documentOf({ '/a': { get: {} } });
  await shop.lifecycle.reload?.(signal);
  t.strictSame(shop.names(), ['get_a']);
  document = [];
  await t.rejects(async () => shop.lifecycle.reload?.(signal), /is not an OpenAPI document/);
  t.strictSame(shop.names(), ['get_a'], 'it keeps what it had');
  t.equal(textOf(await shop.call('get_a')), '[]');
});
