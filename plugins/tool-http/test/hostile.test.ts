import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { HttpCallError } from '../src/errors/errors.js';
import { loadOperations } from '../src/load-operations.js';
import { buildRequest } from '../src/request/build-request.js';
import { documentOf } from './api.js';

const schema = { $ref: '#/components/schemas/Order' };
const DOCUMENT = documentOf(
  {
    '/orders/{id}': {
      parameters: [{ $ref: '#/components/parameters/id' }],
      put: {
        operationId: 'put',
        tags: ['a'],
        parameters: [
          { name: 'q', in: 'query', style: 'deepObject', schema },
          { name: 'c', in: 'cookie', schema: { type: 'array', items: schema } },
        ],
        requestBody: { content: { 'application/json': { schema } } },
      },
      post: {
        requestBody: { content: { 'application/x-www-form-urlencoded': { schema, encoding: { lines: { style: 'form' } } } } },
      },
      additionalOperations: { COPY: { summary: 'Copies' } },
    },
  },
  {
    servers: [{ url: 'https://{host}', variables: { host: { default: 'shop.example.com' } } }],
    components: {
      parameters: { id: { name: 'id', in: 'path', required: true, schema: { type: 'string', default: 'x' } } },
      schemas: {
        Order: {
          type: 'object',
          required: ['id'],
          properties: { id: { type: 'integer', nullable: true }, lines: { type: 'array', items: schema }, kind: { enum: ['a'] } },
          allOf: [{ properties: { note: { type: 'string', default: 'x' } } }],
        },
      },
      securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'x-key' } },
    },
  },
);
const config = { openapi: 'shop.yaml', headers: {}, responseLimit: '1mb' } as const;

/** The paths to all places of a value. */
function placesIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, item]) => placesIn(item, [...path, key]))];
}

/** A copy with another value at a place. */
function changed(value: unknown, [step, ...rest]: readonly string[], other: unknown): unknown {
  if (step === undefined) return other;
  if (Array.isArray(value)) return value.map((item, at) => (String(at) === step ? changed(item, rest, other) : item));
  const fields = value as Record<string, unknown>;
  return { ...fields, [step]: changed(fields[step], rest, other) };
}

t.test('whatever is in a document, it is tools or a mistake, and a call is a request or an error', async () => {
  const place = fc.constantFrom(...placesIn(DOCUMENT));
  const value = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom<unknown>(schema, { $ref: '#' }, { $ref: '#/paths' }, { $ref: 'x.yaml' }, [null], true, '..', '{id}', 'form'),
  );
  const input = fc.dictionary(
    fc.constantFrom('id', 'path_id', 'body_id', 'q', 'c', 'lines', 'note', 'body', 'x'),
    fc.jsonValue(),
  );
  let called = 0;
  fc.assert(
    fc.property(fc.array(fc.tuple(place, value), { minLength: 1, maxLength: 3 }), input, (changes, input) => {
      let document: unknown = DOCUMENT;
      for (const [path, other] of changes)
        if (placesIn(document).some((one) => one.join('\0') === path.join('\0'))) document = changed(document, path, other);
      const { operations } = loadOperations(JSON.stringify(document), config, () => {});
      for (const { plan } of operations) {
        // The values of an enumeration are data.
        const parts = JSON.stringify(plan.inputSchema, (key, part) => (key === 'enum' || key === 'default' ? 0 : part));
        assert.doesNotMatch(parts, /"\$ref":"#/);
        try {
          const { path, query } = buildRequest(plan, input);
          assert.match(path + query, /^[\x21-\x7e]*$/);
          called++;
        } catch (error) {
          assert.ok(error instanceof HttpCallError, String(error));
        }
      }
    }),
    { numRuns: 1_000, seed: 1 },
  );
  assert.ok(called > 500, `${called} requests`);
});

t.test('YAML with circles is converted, or skipped with a line', async (t) => {
  const yaml = `
openapi: 3.1.0
servers: [{ url: "https://shop.example.com" }]
paths:
  /a:
    get:
      parameters:
        - { name: q, in: query, schema: &loop { type: object, properties: { again: *loop } } }
        - { name: d, in: query, schema: { type: object, default: &value { again: *value } } }
  /b:
    get: { parameters: [{ name: q, in: query, schema: { enum: [&list [*list]] } }] }
`;
  const skipped: string[] = [];
  const { operations, problems } = loadOperations(yaml, config, (name, reason) => skipped.push(`${name}: ${reason}`));
  t.strictSame(problems, []);
  t.strictSame(
    operations.map(({ plan }) => plan.inputSchema.properties),
    [{ q: { type: 'object', properties: { again: { type: 'object' } } }, d: { type: 'object' } }],
  );
  t.strictSame(skipped, ['get_b: it has a value that is not JSON']);
});
