import t from 'tap';
import { SchemaTooLarge } from '../../src/request/schema-budget.js';
import { toolSchema } from '../../src/request/tool-schema.js';

const object = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

t.test('a plain schema is sent unchanged, but always with properties', async (t) => {
  const schema = object({ a: { type: 'string', format: 'email', default: 'x' } }, { $schema: 'x', additionalProperties: false });
  t.equal(toolSchema(schema, 'plain'), schema);
  t.same(toolSchema({ type: 'object' }, 'plain'), { type: 'object', properties: {} });
  t.same(toolSchema({}, 'plain'), { type: 'object', properties: {} });
  t.equal(toolSchema(schema, 'gemini'), toolSchema(schema, 'gemini'), 'a schema is translated once');
});

t.test('Gemini gets its part of OpenAPI', async (t) => {
  const gemini = (property: object, root: object = {}) =>
    (toolSchema(object({ a: property }, root), 'gemini') as { properties: { a: unknown } }).properties.a;
  const top = toolSchema(
    object({ a: { type: 'string' } }, { $schema: 'x', additionalProperties: false, required: ['a', 'gone'], $id: 'y' }),
    'gemini',
  );
  t.same(top, { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] });
  t.same(gemini({ type: ['string', 'null'], description: 'd' }), { type: 'string', nullable: true, description: 'd' });
  t.same(gemini({ type: ['string', 'integer'] }), { anyOf: [{ type: 'string' }, { type: 'integer' }] });
  t.same(gemini({ type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 10, multipleOf: 2, default: 4 }), {
    type: 'integer',
    minimum: 1,
    maximum: 9,
  });
  t.same(gemini({ type: 'number', exclusiveMinimum: 0, format: 'double' }), { type: 'number', minimum: 0, format: 'double' });
  t.same(gemini({ const: 'on' }), { type: 'string', enum: ['on'] });
  t.same(gemini({ enum: ['a', 'b'] }), { type: 'string', enum: ['a', 'b'] });
  t.same(gemini({ enum: [1, 2] }), { type: 'integer' }, 'values of an enumeration must be strings');
  t.same(gemini({ enum: [1.5] }), { type: 'number' });
  t.same(gemini({ const: true }), { type: 'boolean' });
  t.same(gemini({ type: 'string', format: 'email', pattern: '^a', minLength: 1 }), {
    type: 'string',
    pattern: '^a',
    minLength: 1,
  });
  t.same(gemini({ type: 'string', format: 'date-time' }), { type: 'string', format: 'date-time' });
  t.same(gemini({ type: 'array', uniqueItems: true }), { type: 'array', items: { type: 'string' } });
  t.same(gemini({ items: { type: 'number' } }), { type: 'array', items: { type: 'number' } });
  t.same(gemini({ oneOf: [{ type: 'string' }, { type: 'null' }] }), { type: 'string', nullable: true });
  t.same(gemini({ anyOf: [{ type: 'string' }, { const: 1 }] }), { anyOf: [{ type: 'string' }, { type: 'integer' }] });
  const point = { $defs: { point: object({ x: { type: 'number' } }, { required: ['x'] }) } };
  t.same(gemini({ $ref: '#/$defs/point', description: 'd' }, point), {
    type: 'object',
    properties: { x: { type: 'number' } },
    required: ['x'],
    description: 'd',
  });
  t.same(gemini({ $ref: '#/$defs/none' }, point), { type: 'string' });
  t.same(gemini({ $ref: 'https://example.com/x' }), { type: 'string' });
  t.same(gemini({ allOf: [{ $ref: '#/$defs/point' }, object({ y: { type: 'string' } }, { required: ['y'] })] }, point), {
    type: 'object',
    properties: { x: { type: 'number' }, y: { type: 'string' } },
    required: ['x', 'y'],
  });
});

t.test('no schema is a combination at the top level: OpenAI and Anthropic refuse it', async (t) => {
  const combined = { type: 'object', anyOf: [object({ a: { type: 'string' } }, { required: ['a'] }), object({ b: {} })] };
  t.same(toolSchema(combined, 'plain'), { type: 'object', properties: { a: { type: 'string' }, b: {} } });
});

t.test('a schema that refers to itself ends', async (t) => {
  const node = object({ next: { $ref: '#/$defs/node' }, all: { allOf: [{ $ref: '#/$defs/node' }] } });
  for (const form of ['gemini', 'strict'] as const) {
    const schema = toolSchema(object({ node: { $ref: '#/$defs/node' } }, { $defs: { node } }), form);
    t.ok(JSON.stringify(schema).length < 2_000_000, form);
  }
});

t.test('strict servers get no keywords that they refuse', async (t) => {
  const strict = (schema: object) => toolSchema(schema as Record<string, unknown>, 'strict');
  t.same(
    strict(
      object(
        {
          a: { type: 'string', pattern: '^a', format: 'email', default: 'x', enum: ['a'] },
          b: { type: 'array', items: { $ref: '#/$defs/c' } },
          d: true,
        },
        { $schema: 'x', $defs: { c: { type: 'integer', examples: [1] } }, required: ['a'], additionalProperties: false },
      ),
    ),
    object(
      { a: { type: 'string', enum: ['a'] }, b: { type: 'array', items: { type: 'integer' } }, d: {} },
      { required: ['a'], additionalProperties: false },
    ),
  );
  t.same(
    strict({
      anyOf: [object({ a: { type: 'string' } }, { required: ['a'] }), object({ b: { type: 'string' } }, { required: ['b'] })],
    }),
    object({ a: { type: 'string' }, b: { type: 'string' } }),
    'no combination at the top level',
  );
  t.same(
    strict({ allOf: [object({ a: { type: 'string' } }, { required: ['a'] })], description: 'd' }),
    object({ a: { type: 'string' } }, { required: ['a'], description: 'd' }),
  );
  t.same(strict(object({ a: { type: 'string', anyOf: [{ minLength: 1 }, { type: 'null' }] } })), {
    type: 'object',
    properties: { a: { anyOf: [{ type: 'string', minLength: 1 }, { type: 'null' }] } },
  });
});

t.test('S-49 a schema is translated with fewer references if it would be too large, or refused', async (t) => {
  const define = (at: number) =>
    object(
      Object.fromEntries([1, 2, 3, 4].map((n) => [`p${n}`, at === 9 ? { type: 'string' } : { $ref: `#/$defs/d${at + 1}` }])),
    );
  const $defs = Object.fromEntries(Array.from({ length: 10 }, (_, at) => [`d${at}`, define(at)]));
  const description = 'x'.repeat(1_000_000);
  const wide = object(Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`p${at}`, { $ref: '#/$defs/d' }])), {
    $defs: { d: { description } },
  });
  for (const form of ['gemini', 'strict'] as const) {
    const deep = toolSchema(object({ a: { $ref: '#/$defs/d0' } }, { $defs }), form);
    t.ok(JSON.stringify(deep).length < 1_000_000, form);
    t.throws(() => toolSchema(wide, form), SchemaTooLarge);
  }
  const repeated = object({ a: { type: ['object', 'object', 'null'], properties: { b: { type: ['string', 'string'] } } } });
  t.same(toolSchema(repeated, 'gemini').properties, {
    a: { type: 'object', nullable: true, properties: { b: { type: 'string' } } },
  });
  const malformed = object({ a: { $ref: '#/%', description: 'd' } });
  t.same(toolSchema(malformed, 'strict').properties, { a: { description: 'd' } });
});

t.test('S-29 a property with the name __proto__ stays a property of a strict schema', async (t) => {
  const odd = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
  const strict = toolSchema(object({}, { allOf: [odd], ...JSON.parse('{"__proto__":{"type":"number"}}') }), 'strict');
  t.ok(Object.hasOwn(strict.properties as object, '__proto__'));
  t.equal(Object.getPrototypeOf(strict.properties), Object.prototype);
  t.equal(Object.getPrototypeOf(strict), Object.prototype);
});
