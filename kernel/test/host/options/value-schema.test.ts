import t from 'tap';
import { compileSchema } from '../../../src/host/options/value-schema.js';

const messages = (schema: Readonly<Record<string, unknown>>, value: unknown) =>
  compileSchema(schema, { allErrors: true })(value).map(({ message }) => message);

t.test('says in words of JSON what a value must be, and where', async (t) => {
  const schema = {
    type: 'object',
    required: ['city'],
    additionalProperties: false,
    properties: {
      city: { type: 'string', minLength: 1 },
      days: { type: 'array', items: { type: 'integer', minimum: 0 } },
      unit: { enum: ['c', 'f'] },
      at: { anyOf: [{ type: 'string' }, { type: 'null' }] },
      near: { type: 'object', properties: { 'a b': { type: 'boolean' } } },
    },
  };
  const mistakes: readonly (readonly [unknown, string])[] = [
    [{}, 'it must have the property "city"'],
    [{ city: '' }, '"city" must not be empty'],
    [{ city: 'x', town: 1 }, 'it must not have the property "town"'],
    [{ city: 'x', days: 'today' }, '"days" must be an array, not "today"'],
    [{ city: 'x', days: [1, 1.5] }, '"days[1]" must be an integer, not 1.5'],
    [{ city: 'x', days: [-1] }, '"days[0]" must be at least 0, not -1'],
    [{ city: 'x', unit: 'k' }, '"unit" must be "c" or "f", not "k"'],
    [{ city: 'x', near: { 'a b': 'yes' } }, '"near["a b"]" must be a boolean, not "yes"'],
    [5, 'it must be an object, not 5'],
  ];
  for (const [value, message] of mistakes) t.strictSame(messages(schema, value), [message]);
  t.strictSame(messages(schema, { city: 'x', at: 1 }).at(-1), '"at" must be a string or null, not 1');
  t.strictSame(messages(schema, { city: 'x', days: [1], at: null }), []);
});

t.test('a long list of choices is cut', async (t) => {
  const choices = Array.from({ length: 40 }, (_, i) => i);
  t.match(messages({ enum: choices }, 'x'), [/^it must be 0, 1, .*, 29 or another of 40, not "x"$/]);
});

t.test('a mistake that there are no better words for is described as by ajv', async (t) => {
  t.strictSame(messages({ multipleOf: 5 }, 7), ['it must be multiple of 5']);
  t.strictSame(
    messages({ $defs: { a: { type: 'string' } }, anyOf: [{ $ref: '#/$defs/a' }] }, 7).at(-1),
    'it must match a schema in anyOf',
  );
});

t.test('stops at the first mistake, fills in defaults and selects by discriminator only where asked to', async (t) => {
  const schema = { type: 'object', required: ['a', 'b'], properties: { c: { default: 1 } } };
  t.equal(compileSchema(schema)({}).length, 1);
  const value = { a: 1, b: 2 };
  compileSchema(schema)(value);
  t.strictSame(value, { a: 1, b: 2 });
  compileSchema(schema, { useDefaults: true })(value);
  t.strictSame(value, { a: 1, b: 2, c: 1 });
  const shapes = {
    discriminator: { propertyName: 'kind' },
    required: ['kind'],
    oneOf: [{ properties: { kind: { const: 'x' } } }],
  };
  const [mistake] = compileSchema({ type: 'object', ...shapes }, { discriminator: true })({ kind: 'y' });
  t.match(mistake, { keyword: 'discriminator', params: { tag: 'kind', tagValue: 'y' } });
  t.doesNotThrow(() => compileSchema({ type: 'object', discriminator: 'of another kind' }));
});
