import { ModelServer, startServer } from '@plugboard/testing';
import t from 'tap';
import { api, documentOf } from './api.js';

const SHOP = documentOf({
  '/orders/{id}': {
    get: {
      operationId: 'orders/get',
      description: 'Returns an order',
      parameters: [{ name: 'expand[]', in: 'query', schema: { type: 'array', items: { type: 'string' } } }],
    },
  },
  '/orders': {
    post: {
      operationId: 'createOrder',
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { type: 'object', required: ['sku'], properties: { sku: { type: 'string' } } } },
        },
      },
    },
  },
});

const FILE = `
transports: { http: { port: 0 }, chat-completions: {} }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: scripted } }
tools:
  shop: { use: http, openapi: ./shop.json, baseUrl: "\${SHOP_URL}", headers: { Authorization: "Bearer \${SHOP_TOKEN}" } }
agents: { assistant: { model: fast, tools: [shop] } }
`;

t.test('an agent calls the API, and neither the model nor the log sees the secret', async (t) => {
  const shop = await api(t, (response, { method }) => response.end(method === 'GET' ? 'Order 7: two lamps' : 'created'));
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const server = await startServer(FILE, {
    env: { MODEL_URL: model.url, SHOP_URL: `${shop.url}/v1`, SHOP_TOKEN: 'canary-of-shop' },
    files: { 'shop.json': JSON.stringify(SHOP) },
  });
  t.teardown(() => server.stop());
  const ask = () =>
    fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'Order 7?' }] }),
    });
  model.enqueue(
    {
      toolCalls: [
        { name: 'shop__orders_get', arguments: { id: '7/../8' } },
        { name: 'shop__createOrder', arguments: { sku: 'lamp' } },
        { name: 'shop__createOrder', arguments: { size: 1 } },
      ],
    },
    { text: 'Two lamps.' },
  );
  t.match(await (await ask()).text(), /Two lamps/);
  t.match(
    shop.requests.toSorted((a, b) => (a.method < b.method ? -1 : 1)),
    [
      { method: 'GET', url: '/v1/orders/7%2F..%2F8', headers: { authorization: 'Bearer canary-of-shop' } },
      { method: 'POST', url: '/v1/orders', body: '{"sku":"lamp"}', headers: { 'idempotency-key': /^.+\/1$/ } },
    ],
  );
  const [first, second] = model.requests.map(({ body }) => body);
  t.match(first?.tools, [{ function: { name: 'shop__createOrder' } }, { function: { name: 'shop__orders_get' } }]);
  const results = second?.messages.slice(-3).map(({ content }: { content?: unknown }) => content);
  t.match(results, ['Order 7: two lamps', 'created', /do not match the tool's schema/]);
  t.notMatch(JSON.stringify([first, second, server.logs]), /canary/);
});

t.test('OAS-12 mistakes have the line of the configuration file', async (t) => {
  const file = (options: string) => `
transports: { http: { port: 0 }, chat-completions: {} }
models: { fast: { use: demo } }
tools:
  shop:
    use: http
${options}
agents: { assistant: { model: fast, tools: [shop] } }
`;
  const files = { 'shop.json': JSON.stringify(SHOP), 'bad.json': '{"openapi": "3.1.0",\n\n "paths": [ }' };
  const base = '    baseUrl: https://shop.example.com';
  const fails = (options: string, message: RegExp) => t.rejects(startServer(file(options), { files }), { message });
  await fails(
    `    openapi: ./shop.json\n${base}\n    operations:\n      - createOrder\n      - getOrder`,
    /plugboard.yaml:11:9.*operations\[1\].*unknown operation "getOrder"/s,
  );
  await fails(
    `    openapi: ./bad.json\n${base}`,
    /plugboard.yaml:7:14 tools.shop.openapi: \.\/bad.json is not valid JSON: .*line 3/s,
  );
  await fails('    openapi: ./shop.json', /plugboard.yaml:7:14.*names no server; set `baseUrl`/s);
  const remote = await api(t, (response) => response.end('{"swagger":"2.0"}'));
  await fails(`    openapi: ${remote.url}/openapi.json`, /plugboard.yaml:7:14.*is Swagger 2.0/s);
});
