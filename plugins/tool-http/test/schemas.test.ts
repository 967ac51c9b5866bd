import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { OpenApiDocument } from '../src/document/document.js';
import { Aliases } from '../src/schema/aliases.js';
import { SchemaConverter } from '../src/schema/convert-schema.js';

/** Converts a schema of a document with these components. */
function convert(schema: unknown, schemas: object = {}, openapi = '3.1.0') {
  return new SchemaConverter(new OpenApiDocument({ openapi, components: { schemas } }), new Aliases()).convert(schema);
}

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

t.test('OAS-1 circles end, and the same schema beside one stays whole', async (t) => {
  const Node = { type: 'object', description: 'A node', properties: { next: ref('Node'), name: { type: 'string' } } };
  t.strictSame(convert({ type: 'object', properties: { a: ref('Node'), b: ref('Node') } }, { Node }), {
    type: 'object',
    properties: {
      a: {
        type: 'object',
        description: 'A node',
        properties: { next: { type: 'object', description: 'A node' }, name: { type: 'string' } },
      },
      b: {
        type: 'object',
        description: 'A node',
        properties: { next: { type: 'object', description: 'A node' }, name: { type: 'string' } },
      },
    },
  });
  const circles = {
    items: { type: 'array', items: ref('items') },
    allOf: { type: 'object', allOf: [ref('allOf'), { properties: { a: ref('allOf') } }] },
    map: { type: 'object', additionalProperties: ref('map') },
    oneOf: { oneOf: [ref('oneOf'), { type: 'string' }] },
    chain: ref('chain2'),
    chain2: ref('chain'),
  };
  t.strictSame(convert(ref('items'), circles), { type: 'array', items: { type: 'array', items: {} } });
  t.strictSame(convert(ref('allOf'), circles), { type: 'object', properties: { a: { type: 'object' } } });
  t.strictSame(convert(ref('map'), circles), { type: 'object', additionalProperties: { type: 'object' } });
  t.strictSame(convert(ref('oneOf'), circles), { anyOf: [{}, { type: 'string' }] });
  t.strictSame(convert(ref('chain'), circles), {});
});

t.test('OAS-1 schemas that grow with the power of their depth are reduced, deepest first', async (t) => {
  const levels = Object.fromEntries(
    Array.from({ length: 30 }, (_, level) => [
      `L${level}`,
      {
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`p${at}`, ref(`L${(level + 1) % 30}`)])),
      },
    ]),
  );
  const text = JSON.stringify(convert(ref('L0'), levels));
  t.ok(text.length < 500_000, `${text.length}`);
  t.match(text, /"p7":\{"type":"object"\}/);
});

t.test('OAS-1 a schema that is nested a hundred thousand levels deep is reduced', async (t) => {
  let deep: object = { type: 'string' };
  for (let at = 0; at < 100_000; at++) deep = { type: 'array', items: deep };
  t.ok(JSON.stringify(convert(deep)).length < 2_000);
});

t.test('OAS-3 what stands behind a reference keeps its type', async (t) => {
  const schemas = {
    Id: { type: 'integer', minimum: 1 },
    Color: { type: 'string', enum: ['red', 'blue'] },
    Any: { nullable: true, allOf: [ref('Color')] },
  };
  t.strictSame(convert({ ...ref('Id'), description: 'of the order' }, schemas), {
    type: 'integer',
    minimum: 1,
    description: 'of the order',
  });
  t.strictSame(convert(ref('Color'), schemas), { type: 'string', enum: ['red', 'blue'] });
  t.strictSame(convert(ref('Any'), schemas), { type: ['string', 'null'], enum: ['red', 'blue', null] });
});

t.test('OAS-11 null of 3.0 and of 3.1, and exclusive bounds of both', async (t) => {
  t.strictSame(convert({ type: 'string', nullable: true }, {}, '3.0.3'), { type: ['string', 'null'] });
  t.strictSame(convert({ type: ['string', 'null'] }), { type: ['string', 'null'] });
  t.strictSame(convert({ oneOf: [{ type: 'string' }, { type: 'integer' }], nullable: true }), {
    anyOf: [{ type: 'string' }, { type: 'integer' }, { type: 'null' }],
  });
  t.strictSame(convert({ type: 'number', minimum: 0, exclusiveMinimum: true }, {}, '3.0.3'), {
    type: 'number',
    exclusiveMinimum: 0,
  });
  t.strictSame(convert({ type: 'number', exclusiveMaximum: 5 }), { type: 'number', exclusiveMaximum: 5 });
});

t.test('allOf is one schema; read-only properties and keywords of OpenAPI are left out', async (t) => {
  const Base = {
    type: 'object',
    required: ['id', 'kind'],
    properties: { id: { type: 'string', readOnly: true }, kind: { type: 'string' } },
  };
  const schema = {
    allOf: [ref('Base'), { required: ['size'], properties: { size: { type: 'integer', example: 5, xml: {} } } }],
    discriminator: { propertyName: 'kind' },
    'x-internal': true,
    externalDocs: {},
  };
  t.strictSame(convert(schema, { Base }), {
    type: 'object',
    properties: { kind: { type: 'string' }, size: { type: 'integer' } },
    required: ['kind', 'size'],
  });
});

t.test('malformed keywords are left out', async (t) => {
  const schema = {
    type: ['file', 'string'],
    minLength: -1,
    maxLength: 'ten',
    pattern: '(',
    minimum: Number.NaN,
    enum: [],
    required: 'a',
    format: 7,
    description: 7,
    properties: ['a'],
    items: 7,
    anyOf: {},
    multipleOf: 0,
  };
  t.strictSame(convert(schema), { type: 'string' });
  for (const other of [null, 7, 'x', [], true]) t.strictSame(convert(other), {});
});

/** Schemas of a document with the names A to E, with references among them. */
const { schema: anySchema } = fc.letrec<{ schema: object; leaf: object }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom('A', 'B', 'C', 'D', 'E').map(ref),
    fc.record({ type: fc.constantFrom('string', 'integer', 'object', 'array', 'file'), description: fc.string() }),
    fc.record({ enum: fc.array(fc.jsonValue(), { maxLength: 3 }), default: fc.jsonValue() }),
  ),
  schema: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    tie('leaf'),
    fc.record({ type: fc.constant('object'), properties: fc.dictionary(fc.string(), tie('schema'), { maxKeys: 3 }) }),
    fc.record({ type: fc.constant('array'), items: tie('schema'), nullable: fc.boolean() }),
    fc.record({ allOf: fc.array(tie('schema'), { maxLength: 3 }), description: fc.string() }),
    fc.record({ oneOf: fc.array(tie('schema'), { maxLength: 3 }), additionalProperties: tie('schema') }),
    fc.dictionary(fc.constantFrom('type', 'items', 'allOf', 'required', 'properties', '$ref', 'enum', 'x'), fc.jsonValue()),
  ),
}));
const anyDocument = fc.record({ A: anySchema, B: anySchema, C: anySchema, D: anySchema, E: anySchema });

/** Whether a schema has the keyword somewhere, other than as a value or the name of a property. */
function has(schema: unknown, keyword: string): boolean {
  if (typeof schema !== 'object' || schema === null) return false;
  return Object.entries(schema).some(([key, value]) => {
    if (key === keyword) return true;
    if (key === 'enum' || key === 'const') return false;
    return key === 'properties' ? Object.values(value).some((one) => has(one, keyword)) : has(value, keyword);
  });
}

t.test('OAS-3 OAS-2 of any document, no $ref reaches the model, and converting changes nothing', async () => {
  fc.assert(
    fc.property(anyDocument, anySchema, (schemas, schema) => {
      const before = JSON.stringify([schemas, schema]);
      const alone = attempt(() => convert(schema, schemas));
      for (const name of Object.keys(schemas)) attempt(() => convert(ref(name), schemas));
      assert.deepEqual(
        attempt(() => convert(schema, schemas)),
        alone,
        'other conversions changed it',
      );
      assert.equal(JSON.stringify([schemas, schema]), before, 'the document was changed');
      assert.ok(!has(alone, '$ref') && !has(alone, 'allOf') && !has(alone, 'oneOf'), JSON.stringify(alone));
    }),
    { numRuns: 500, seed: 1 },
  );
});

/** The result, or the error's message: a reference may lead nowhere, or out of the document. */
function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    if (!/OperationFault|DocumentFault/.test((error as Error).name)) throw error;
    return (error as Error).message;
  }
}

t.test('OAS-5 every key becomes one that providers accept, and is mapped back', async (t) => {
  const aliases = new Aliases();
  t.equal(aliases.of('plain-Key_1'), 'plain-Key_1');
  t.match(aliases.of('page[size]'), /^page_size_[0-9a-f]{6}$/);
  t.match(aliases.of('__proto__'), /^[A-Za-z0-9_-]{7,64}$/);
  fc.assert(
    fc.property(fc.array(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true })), (values) => {
      const aliases = new Aliases();
      const renamed = rename(values, (key) => aliases.of(key));
      for (const key of keysOf(renamed)) assert.match(key, /^[A-Za-z0-9_-]{1,64}$/);
      assert.equal(JSON.stringify(aliases.restore(renamed)), JSON.stringify(values));
    }),
    { numRuns: 300, seed: 1 },
  );
});

function rename(value: unknown, name: (key: string) => string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => rename(item, name));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [name(key), rename(item, name)]));
}

function keysOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [];
  const entries = Object.entries(value);
  return entries.flatMap(([key, item]) => [...(Array.isArray(value) ? [] : [key]), ...keysOf(item)]);
}
