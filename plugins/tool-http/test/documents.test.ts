import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { checkOptions } from '@plugboard/testing';
import { dump } from 'js-yaml';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { loadOperations } from '../src/load-operations.js';
import { api, documentOf, entry, folderWith } from './api.js';

const base = { baseUrl: 'https://shop.example.com' };
const SHOP = documentOf({
  '/orders': { get: { operationId: 'listOrders', tags: ['orders'] }, post: { operationId: 'createOrder' } },
});

/** The mistakes that `check` finds. */
function faults(t: Test, document: object | string, config: object = base) {
  const folder = folderWith(t, { 'shop.yaml': typeof document === 'string' ? document : JSON.stringify(document) });
  const resolvePath = (path: string) => join(folder, path);
  return checkOptions(plugin, { openapi: 'shop.yaml', ...config }, { resolvePath }).faults;
}

t.test('OAS-14 documents of 3.0, 3.1 and 3.2 are read, as JSON or YAML', async (t) => {
  for (const openapi of ['3.0.0', '3.0.4', '3.1.0', '3.1.2', '3.2.0', 3.1]) {
    t.strictSame(entry(t, { ...SHOP, openapi }, base).names(), ['listOrders', 'createOrder'], String(openapi));
    t.strictSame(entry(t, dump({ ...SHOP, openapi }), base).names(), ['listOrders', 'createOrder'], `YAML ${openapi}`);
  }
  const shared =
    'openapi: 3.1.0\nx: &op { operationId: a, tags: [x] }\npaths:\n  /a: { get: *op }\n  /b: { get: { <<: *op, operationId: b } }\n';
  t.strictSame(entry(t, shared, base).names()[0], 'a');
});

t.test('OAS-14 OAS-12 a text that is not a document of a supported version is a mistake that says so', async (t) => {
  const cases: readonly (readonly [document: string | object, fault: RegExp])[] = [
    [{ swagger: '2.0', paths: {} }, /^openapi: shop.yaml is Swagger 2.0; convert it to OpenAPI 3/],
    [{ openapi: '4.0.0', paths: {} }, /is of OpenAPI 4.0.0; only 3.0, 3.1 and 3.2 are supported/],
    [{ paths: {} }, /is not an OpenAPI document: it has no `openapi: 3/],
    ['', /is not valid YAML: expected a document, but the input is empty/],
    ['just text', /is not an OpenAPI document/],
    ['[]', /is not an OpenAPI document/],
    ['<html>', /is not an OpenAPI document/],
    ['{"openapi": "3.1.0",\n', /is not valid JSON: /],
    ['openapi: 3.1.0\npaths:\n  /a: {\n', /is not valid YAML: .*\(line 4\)$/],
    ['openapi: 3.1.0\npaths: {}\npaths: {}\n', /is not valid YAML: duplicated mapping key \(line 3\)$/],
    ['\u0000\u0001\u0002', /is not/],
    [`[`.repeat(200_000), /is nested too deeply|is not/],
  ];
  for (const [document, fault] of cases) {
    const found = faults(t, document);
    t.equal(found.length, 1, String(found));
    t.match(found[0], fault);
  }
});

t.test('OAS-12 a file that is missing, a folder or larger than 32 MiB is a mistake', async (t) => {
  t.match(faults(t, SHOP, { openapi: 'none.yaml' }), [/^openapi: the file .*none.yaml does not exist$/]);
  t.match(faults(t, SHOP, { openapi: '.' }), [/^openapi: . cannot be read: EISDIR/]);
  t.match(faults(t, SHOP, { openapi: 'ftp://x/a' }), [/^openapi: must be a file, or an http or https URL$/]);
  const folder = folderWith(t, {});
  writeFileSync(join(folder, 'large.json'), Buffer.alloc(128 * 2 ** 20, ' '));
  const start = process.cpuUsage();
  const { faults: found } = checkOptions(plugin, { openapi: join(folder, 'large.json') });
  t.match(found, [/^openapi: .*large.json is larger than 32 MiB; make one with the operations that you need$/]);
  t.ok(process.cpuUsage(start).user < 2_000_000, 'it is not parsed');
});

t.test('OAS-12 missing ids and tags are named, each at its place', async (t) => {
  t.strictSame(faults(t, SHOP, { ...base, operations: ['listOrders', 'listOrder', 'x'], tags: ['order'] }), [
    'operations[1]: unknown operation "listOrder", did you mean "listOrders"?',
    'operations[2]: unknown operation "x"; known: "listOrders", "createOrder"',
    'tags[0]: unknown tag "order", did you mean "orders"?',
  ]);
  t.strictSame(faults(t, documentOf({ '/a': { get: {} } }), { ...base, tags: ['x'] }), [
    'tags[0]: unknown tag "x"; the document has no tags',
  ]);
  const many = documentOf(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`/long-path-${at}`, { get: {} }])));
  t.match(faults(t, many, { ...base, operations: ['zzz'] }), [
    /^operations\[0\]: unknown operation "zzz"; the document has 50: (?:"[^"]+", ){19}"[^"]+" …$/,
  ]);
});

t.test('OAS-12 a remote reference is a mistake, and is never read', async (t) => {
  const other = await api(t);
  for (const $ref of [`${other.url}/a.yaml#/X`, 'other.yaml#/X', '//evil/x', 'file:///etc/passwd']) {
    const schema = { type: 'object', properties: { a: { $ref } } };
    const requestBody = { content: { 'application/json': { schema } } };
    for (const operation of [{ requestBody }, { parameters: [{ $ref }] }, { requestBody: { $ref } }])
      t.match(faults(t, documentOf({ '/a': { post: operation } })), [
        /^openapi: shop.yaml refers to another document, ".*", which is never read: bundle it/,
      ]);
    t.match(faults(t, documentOf({ '/a': { $ref } })), [/refers to another document/]);
  }
  // What is not selected, and what only a response has, does not matter.
  const paths = {
    '/a': { get: { operationId: 'a', responses: { 200: { $ref: 'x.yaml' } } } },
    '/b': { get: { operationId: 'b', parameters: [{ $ref: 'x.yaml' }] } },
  };
  t.strictSame(faults(t, documentOf(paths), { ...base, operations: ['a'] }), []);
  t.equal(other.requests.length, 0);
});

t.test('an operation whose reference leads nowhere is skipped with a line, the others stay', async (t) => {
  const schema = { $ref: '#/components/schemas/None' };
  const paths = {
    '/a': { get: { parameters: [{ name: 'q', in: 'query', schema }] } },
    '/b': { get: { parameters: [{ $ref: '#/components/parameters/Loop' }] } },
    '/c': { get: { parameters: [{ $ref: '#/constructor/prototype' }] } },
    '/d': { get: {} },
    '/e': { $ref: '#/paths/~1d' },
  };
  const components = { parameters: { Loop: { $ref: '#/components/parameters/Loop' } } };
  const shop = entry(t, documentOf(paths, { components }), base);
  t.strictSame(shop.names(), ['get_d', 'get_e']);
  t.strictSame(await shop.skipped(), [
    'get_a: an operation was skipped: its reference "#/components/schemas/None" is not in the document',
    'get_b: an operation was skipped: its reference "#/components/parameters/Loop" leads to itself',
    'get_c: an operation was skipped: its reference "#/constructor/prototype" is not in the document',
  ]);
});

t.test('a document without a server is a mistake, unless baseUrl has one', async (t) => {
  t.strictSame(faults(t, SHOP, {}), ['openapi: shop.yaml names no server; set `baseUrl` to the address of the API']);
  t.match(faults(t, { ...SHOP, servers: [{ url: '/v1' }] }, {}), [/names no server/]);
  t.match(faults(t, { ...SHOP, servers: [{ url: 'ftp://shop' }] }, {}), [
    /names the server "ftp:\/\/shop", which is not an http or https URL/,
  ]);
  t.strictSame(
    faults(t, { ...SHOP, servers: [{ url: 'https://shop.example.com/{v}', variables: { v: { default: 'v1' } } }] }, {}),
    [],
  );
});

t.test('mistakes in the other options', async (t) => {
  t.match(faults(t, SHOP, { baseUrl: 'ftp://x' }), [/^baseUrl: must be an http or https URL$/]);
  t.match(faults(t, SHOP, { baseUrl: 'https://ann:secret@x' }), [
    /^baseUrl: must not contain a user or password; send them in `headers`/,
  ]);
  t.strictSame(
    faults(t, SHOP, {
      ...base,
      allowPrivate: ['localhost', '10.0.0.0/8'],
      headers: { 'a b': 'x', Host: 'x', A: 'x', a: 'x', B: 'x\n' },
    }),
    [
      'headers["a b"]: is not the name of a header',
      'headers.Host: cannot be set: it says where a request begins and ends',
      'headers.a: is there twice, in other letters',
      'headers.B: has characters that a header cannot have, perhaps a line break at its end',
      'allowPrivate[1]: "10.0.0.0/8" is not a host or host:port, such as localhost:3000',
    ],
  );
});

/** A document of many operations, each with parameters, a body and answers, as APIs have them. */
export function largeDocument(operations: number) {
  const schemas = Object.fromEntries(
    Array.from({ length: 500 }, (_, at) => [
      `Thing${at}`,
      {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', description: 'The name of the thing, as people see it.', example: 'A thing' },
          size: { type: 'integer', minimum: 0, nullable: true },
          kind: { type: 'string', enum: ['small', 'large', 'other'] },
          parent: { $ref: `#/components/schemas/Thing${(at * 7 + 1) % 500}` },
          labels: { type: 'array', items: { type: 'string' } },
        },
      },
    ]),
  );
  const body = (at: number) => ({
    content: { 'application/json': { schema: { $ref: `#/components/schemas/Thing${at % 500}` } } },
  });
  const paths = Object.fromEntries(
    Array.from({ length: operations }, (_, at) => [
      `/things-${at}/{id}`,
      {
        [at % 2 === 0 ? 'get' : 'post']: {
          operationId: `thing${at}`,
          summary: `Does the thing of number ${at}`,
          description: 'What it does is described here, in one or two sentences of the usual length.',
          tags: [`tag${at % 20}`],
          parameters: [
            { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
            { name: 'limit', in: 'query', description: 'How many things', schema: { type: 'integer', default: 20 } },
          ],
          ...(at % 2 === 1 && { requestBody: { required: true, ...body(at) } }),
          responses: { 200: { description: 'The thing', ...body(at) }, 404: { description: 'There is no such thing' } },
        },
      },
    ]),
  );
  return documentOf(paths, { openapi: '3.0.3', servers: [{ url: 'https://things.example.com' }], components: { schemas } });
}

t.test(
  'OAS-12 a document of 5,000 operations loads in 3 s of CPU and 100 MiB, and only what is selected is declared',
  async (t) => {
    const document = largeDocument(5_000);
    for (const [text, operations] of [
      [JSON.stringify(document), undefined],
      [dump(document, { noRefs: true }), ['thing1', 'thing4998']],
    ] as const) {
      const what = `${text.slice(0, 8)}…, ${operations?.length ?? 'all'}`;
      const held = heapUsed();
      const before = process.cpuUsage();
      const config = { openapi: 'x', headers: {}, responseLimit: '1mb', operations } as const;
      const loaded = loadOperations(text, config, () => {});
      const { user, system } = process.cpuUsage(before);
      // It takes about 1 s. Beside other processes the same work takes several times as much.
      t.ok((user + system) / 1e6 < 15, `${what}: ${((user + system) / 1e6).toFixed(2)} s`);
      t.ok(heapUsed() - held < (operations ? 10 : 100) * 2 ** 20, `${what}: ${heapUsed() - held} bytes`);
      t.equal(loaded.operations.length, operations?.length ?? 5_000);
    }
  },
);

/** Bytes, without garbage. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

t.test('OAS-12 of a document at a URL no more than 32 MiB is read', async (t) => {
  const piece = Buffer.alloc(2 ** 20, ' ');
  let written = 0;
  const large = await api(t, (response) => {
    const write = () => {
      while (written < 128 && !response.destroyed) {
        written += 1;
        if (!response.write(piece)) return void response.once('drain', write);
      }
    };
    write();
  });
  const shop = entry(t, '', { openapi: `${large.url}/openapi.json` });
  await t.rejects(async () => shop.lifecycle.start?.(new AbortController().signal), {
    name: 'ConfigFault',
    problems: [{ path: ['openapi'], message: /is larger than 32 MiB/ }],
  });
  t.ok(written < 60, `${written} MiB`);
});
