import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Tool } from '@plugboard/kernel';
import t from 'tap';
import { argumentsValidator as validatorOf } from '../../../src/engine/tools/tool-arguments.js';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** The linter takes an object with a literal one for a promise. */
const THEN = 'then';
const argumentsValidator = (tool: Tool, onUnmatchable: (patterns: readonly string[]) => void = () => {}) =>
  validatorOf(tool, onUnmatchable);
const toolWith = (inputSchema: object) =>
  ({ name: 'f', description: '', inputSchema, effect: 'read', run: async () => '' }) as Tool;

t.test('a compiled schema is freed with its tool', async (t) => {
  const schemas = Array.from({ length: 20 }, (_, i) => {
    const properties = { text: { type: 'string', maxLength: i } };
    t.match(argumentsValidator(toolWith({ type: 'object', properties }))('{"text": 1}'), {
      fault: /"text" must be a string, not 1/,
    });
    return new WeakRef(properties);
  });
  await delay(0);
  collectGarbage();
  const alive = schemas.filter((schema) => schema.deref() !== undefined).length;
  t.ok(alive <= 1, `${alive} of 20 are in memory; the last one may still be on the stack`);
});

t.test('schemas with the same id or with references to the meta-schema do not conflict', async (t) => {
  const check = (type: string) => argumentsValidator(toolWith({ $id: 'https://example.com/tool', properties: { a: { type } } }));
  const [texts, numbers] = [check('string'), check('number')];
  t.match(texts('{"a": "x"}'), { input: { a: 'x' } });
  t.match(numbers('{"a": "x"}'), { fault: /"a" must be a number, not "x"/ });
  const schema = argumentsValidator(toolWith({ properties: { s: { $ref: 'https://json-schema.org/draft/2020-12/schema' } } }));
  t.match(schema('{"s": {"type": "string"}}'), { input: {} });
  t.match(schema('{"s": {"type": "text"}}'), { fault: /arguments do not match/ });
});

t.test('a schema may refer to itself and to its definitions', async (t) => {
  const tree = argumentsValidator(toolWith({ properties: { children: { type: 'array', items: { $ref: '#' } } } }));
  t.match(tree('{"children": [{"children": [5]}]}'), {
    fault: /"children\[0\]\.children\[0\]" must be an object { children }, not 5/,
  });
  const named = argumentsValidator(toolWith({ properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } }));
  t.match(named('{"a": 5}'), { fault: /"a" must be a string, not 5/ });
});

t.test('an invalid schema is refused', async (t) => {
  const faulty: Readonly<Record<string, unknown>> = {
    'an unknown type': { properties: { a: { type: 'text' } } },
    'a type that is not text': { type: 5 },
    'properties that are a list': { properties: ['a'] },
    'a property that is not a schema': { properties: { a: 5 } },
    'a property that is null': { properties: { a: null } },
    'a part inside of a definition': { $defs: { a: { items: { anyOf: ['text'] } } } },
    'items that are text': { properties: { a: { type: 'array', items: 'text' } } },
    'a list of items in 2020-12': { properties: { a: { type: 'array', items: [{ type: 'string' }] } } },
    'required names that are text': { required: 'a' },
    'required names that are numbers': { required: [1] },
    'an enumeration that is text': { properties: { a: { enum: 'a' } } },
    'an empty enumeration': { properties: { a: { enum: [] } } },
    'a pattern that does not compile': { properties: { a: { type: 'string', pattern: '(' } } },
    'a limit that is text': { properties: { a: { type: 'string', maxLength: 'long' } } },
    'a description that is not text': { properties: { a: { description: {} } } },
    'a reference to nothing': { properties: { a: { $ref: '#/$defs/none' } } },
    'an empty list of items in 2020-12': { properties: { a: { items: [] } } },
    'an unknown type in additional properties': { additionalProperties: { type: 'text' } },
  };
  for (const [fault, schema] of Object.entries(faulty))
    t.throws(() => argumentsValidator(toolWith(schema as object)), /schema is invalid/, fault);
  const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#' };
  t.match(argumentsValidator(toolWith({ ...draft7, properties: { a: { items: [{ type: 'string' }] } } }))('{"a": [1]}'), {
    fault: /"a\[0\]" must be a string, not 1/,
  });
});

t.test('S-57 patterns are matched in time proportional to the text', async (t) => {
  const withPattern = (pattern: string) =>
    argumentsValidator(
      toolWith({ properties: { a: { type: 'string', pattern } }, patternProperties: { '^x(b+)+$': { type: 'number' } } }),
    );
  const check = withPattern('^(a+)+$');
  t.same(check('{"a":"aaa"}'), { input: { a: 'aaa' } });
  t.match(check(`{"a":"${'a'.repeat(200)}!"}`), { fault: /"a" must match/ });
  t.notMatch(check(`{"x${'b'.repeat(200)}!":"any"}`), { fault: String }, 'the key does not match');
  t.match(check('{"xb":"any"}'), { fault: /"xb" must be a number/ });
  t.match(check(`{"a":"${'a'.repeat(1_000_000)}"}`), {
    fault: /could not be validated: texts are too long, or too many, for their patterns/,
  });
  const many = argumentsValidator(toolWith({ properties: { a: { type: 'array', items: { type: 'string', pattern: '^a' } } } }));
  t.match(many(`{"a":[${Array(50_000).fill('"a"').join()}]}`), { fault: /too many, for their patterns/ });
  t.match(withPattern('^\\p{L}[\\w.+-]*@\\u00e9\\/\\d{2}$')('{"a":"äb+c@é/12"}'), { input: {} });
  t.throws(() => withPattern('['), { message: /^schema is invalid: the pattern .* is not supported/ });
});

t.test(
  'S-57 a pattern with look-around or a back reference is left out of the check, which refuses no more for it',
  async (t) => {
    for (const pattern of ['^(?!a)', '(?<=x)b', '(x)\\1']) {
      const text = { type: 'string', pattern };
      const left: (readonly string[])[] = [];
      const check = (schema: object) => argumentsValidator(toolWith(schema), (patterns) => left.push(patterns));
      const plain = check({ properties: { a: { ...text, maxLength: 3 } }, required: ['a'] });
      t.same(plain('{"a":"abc"}'), { input: { a: 'abc' } }, pattern);
      t.match(plain('{"a":"abcd"}'), { fault: /"a" must/ }, 'the rest of the schema is checked');
      t.match(plain('{}'), { fault: /"a"/ });
      const long = 'x'.repeat(20_000);
      t.match(plain(`{"a":"${long}"}`), { fault: /"a" must/ }, 'of long arguments too');
      const parts: Readonly<Record<string, object>> = {
        not: { properties: { a: { not: text } } },
        oneOf: { properties: { a: { oneOf: [text, { type: 'string' }] } } },
        if: { properties: { a: { if: text, else: { maxLength: 1 }, [THEN]: { maxLength: 1 } } } },
        contains: { properties: { l: { type: 'array', contains: text, maxContains: 1 } } },
        patternProperties: { patternProperties: { [pattern]: { type: 'number' } }, additionalProperties: false },
        propertyNames: { propertyNames: text },
        $defs: { properties: { a: { $ref: '#/$defs/text' } }, $defs: { text } },
      };
      for (const [name, schema] of Object.entries(parts))
        t.match(check(schema)('{"a":"abc","l":["abc","x"]}'), { input: {} }, name);
      t.same(left, Array(left.length).fill([pattern]), 'each schema says once which pattern is left out');
      t.equal(left.length, 1 + Object.keys(parts).length);
    }
  },
);

t.test('S-55 arguments with many mistakes are validated in linear time', async (t) => {
  const list = { type: 'array', items: { anyOf: [{ type: 'string' }, { $ref: '#' }] } };
  const check = argumentsValidator(toolWith({ properties: { list } }));
  const begun = performance.now();
  t.match(check(`{"list":[${Array(100_000).fill(0).join()}]}`), { fault: /do not match/ });
  t.ok(performance.now() - begun < 30_000); // with the square of the length it takes minutes
});
