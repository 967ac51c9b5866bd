import t from 'tap';
import { digestOf } from '../../../src/host/options/compiled-schema.js';
import { closed, OptionSchema } from '../../../src/host/options/schema.js';
import type { JsonSchema } from '../../../src/host/options/schema-types.js';
import { interpolate } from '../../../src/host/options/variables.js';

/** Each fault of some options as `path: message`. */
function faults(properties: Record<string, JsonSchema>, options: unknown, more: Partial<JsonSchema> = {}): string[] {
  return new OptionSchema({ type: 'object', properties, ...more })
    .check(options)
    .faults.map(({ path, message }) => `${path.join('.')}: ${message}`);
}

t.test('each fault is one sentence that says what is valid', async (t) => {
  const cases: [JsonSchema, unknown, string][] = [
    [{ type: 'number' }, 'x', 'must be a number, not "x"'],
    [{ type: 'integer' }, 1.5, 'must be a whole number, not 1.5'],
    [{ type: 'boolean' }, null, 'must be true or false, not nothing'],
    [{ type: 'string' }, 8080, 'must be text (quoted if it looks like a number), not 8080'],
    [{ type: 'string' }, 'x'.repeat(99).split(''), 'must be text (quoted if it looks like a number), not a list'],
    [{ type: 'array', items: { type: 'string' } }, { a: 1 }, 'must be a list, not a map'],
    [{ type: 'array', items: { type: 'string' } }, 'clok', 'must be a list, such as [clok], not "clok"'],
    [{ type: 'array', items: { type: 'string' } }, 'a, files/*', 'must be a list, such as [a, "files/*"], not "a, files/*"'],
    [{ type: 'array', items: { type: 'integer' } }, 5, 'must be a list, such as [5], not 5'],
    [{ type: 'array', items: { type: 'string' } }, '', 'must be a list, not ""'],
    [{ type: 'array', items: { type: 'object' } }, 'x', 'must be a list, not "x"'],
    [{ type: 'object', properties: { file: {} } }, 'x', 'must be a map { file }, not "x"'],
    [{ type: 'object', additionalProperties: true }, 'x', 'must be a map, not "x"'],
    [{ type: ['integer', 'null'] }, 'x', 'must be a whole number or nothing, not "x"'],
    [{ type: 'string', format: 'duration' }, '5', 'must be a duration such as 500ms, 30s, 10m, 24h or 90d, not "5"'],
    [{ type: 'string', format: 'duration' }, 5, 'must be a duration such as 500ms, 30s, 10m, 24h or 90d, not 5'],
    [{ type: 'string', format: 'size' }, '5', 'must be a size such as 64kb or 20mb, not "5"'],
    [{ type: 'string', format: 'url' }, 'nowhere', 'must be a URL such as https://example.com/v1, not "nowhere"'],
    [{ type: 'string', format: 'date' }, '2027-13-01', 'must be a date such as 2027-01-31, not "2027-13-01"'],
    [
      { enum: ['ignore', 'passthrough'] },
      'pasthrough',
      'must be "ignore" or "passthrough", not "pasthrough", did you mean "passthrough"?',
    ],
    [{ enum: [1, 2, 'three'] }, 'z'.repeat(99), `must be 1, 2 or "three", not "${'z'.repeat(58)}…`],
    [{ const: 'only' }, 'other', 'must be "only", not "other"'],
    [{ type: 'number', minimum: 1 }, 0, 'must be at least 1, not 0'],
    [{ type: 'number', exclusiveMinimum: 0 }, 0, 'must be more than 0, not 0'],
    [{ type: 'number', maximum: 9 }, 10, 'must be at most 9, not 10'],
    [{ type: 'string', minLength: 1 }, '', 'must not be empty'],
    [{ type: 'string', minLength: 3 }, 'ab', 'must have at least 3 characters'],
    [{ type: 'string', maxLength: 1 }, 'ab', 'must have at most 1 characters'],
    [{ type: 'array', minItems: 1 }, [], 'must not be empty'],
    [{ type: 'array', minItems: 2 }, [], 'must have at least 2 entries'],
    [{ type: 'array', maxItems: 1 }, [1, 2], 'must have at most 1 entries'],
    [{ type: 'array', uniqueItems: true }, [1, 2, 1], 'must not contain duplicates (items 1 and 3)'],
    [{ type: 'string', pattern: '^[a-z]+$' }, 'A1', 'must match ^[a-z]+$, not "A1"'],
    [
      { type: 'object', additionalProperties: true, propertyNames: { pattern: '^x-' } },
      { y: 1 },
      '"y" is not a valid name here; a name matches ^x-',
    ],
    [{ type: 'object', additionalProperties: true, propertyNames: { maxLength: 1 } }, { yy: 1 }, '"yy" is not a valid name here'],
  ];
  for (const [schema, value, message] of cases) t.same(faults({ option: schema }, { option: value }), [`option: ${message}`]);
  t.same(faults({ a: {} }, {}, { required: ['a'] }), [': the option "a" is missing']);
});

t.test('all faults are reported with their place', async (t) => {
  const item = {
    type: 'object',
    properties: { name: { type: 'string' }, size: { type: 'integer' } },
    required: ['name'],
  } as const;
  t.same(
    faults(
      { tokens: { type: 'array', items: item }, n: { type: 'number' } },
      { tokens: [{ name: 'a' }, { sise: 1, size: 'x' }], n: 'y' },
    ),
    [
      'tokens.1: the option "name" is missing',
      'tokens.1.sise: unknown option, did you mean "size"?',
      'tokens.1.size: must be a whole number, not "x"',
      'n: must be a number, not "y"',
    ],
  );
  const { faults: found } = new OptionSchema({ type: 'object', properties: {} }).check({ 'a/b~c': 1, otional: 1 }, [], {
    keys: ['use', 'optional'],
    synonyms: {},
  });
  t.same(found, [
    { path: ['a/b~c'], at: 'key', code: 'OPTION_UNKNOWN', message: 'unknown option; known: "use", "optional"' },
    { path: ['otional'], at: 'key', code: 'OPTION_UNKNOWN', message: 'unknown option, did you mean "optional"?' },
  ]);
});

t.test('an option of a nested object is suggested with its place', async (t) => {
  const properties: Record<string, JsonSchema> = {
    model: { type: 'string' },
    params: { type: 'object', additionalProperties: true, propertyNames: { examples: ['temperature', 'top_p', 'modle'] } },
    system: { anyOf: [{ type: 'string' }, { type: 'object', properties: { file: { type: 'string' } } }] },
    retry: { type: 'object', properties: { delay: { type: 'object', properties: { initial: { type: 'string' } } } } },
  };
  t.same(faults(properties, { temperature: 0.2, topp: 1, file: 'x', initial: '1s', modell: 'x', modle: 'x', zzz: 1 }), [
    'temperature: unknown option, did you mean params: { temperature: … }?',
    'topp: unknown option, did you mean params: { top_p: … }?',
    'file: unknown option, did you mean system: { file: … }?',
    'initial: unknown option, did you mean retry: { delay: { initial: … } }?',
    'modell: unknown option, did you mean "model"?',
    'modle: unknown option, did you mean params: { modle: … }?',
    'zzz: unknown option; known: "model", "params", "system", "retry"',
  ]);
  t.same(faults(properties, { params: { anything: 1 } }), []);
});

t.test('a fault in a choice refers to the nearest branch', async (t) => {
  const system: JsonSchema = {
    anyOf: [{ type: 'string' }, { type: 'object', properties: { file: { type: 'string' } }, required: ['file'] }],
  };
  t.same(faults({ system }, { system: { fiel: './x' } }), [
    'system: the option "file" is missing',
    'system.fiel: unknown option, did you mean "file"?',
  ]);
  t.same(faults({ system }, { system: 5 }), ['system: must be text (quoted if it looks like a number) or a map { file }, not 5']);
  const list: JsonSchema = { type: 'array', items: system };
  t.same(faults({ list }, { list: ['fine', { file: 1 }, 5] }), [
    'list.1.file: must be text (quoted if it looks like a number), not 1',
    'list.2: must be text (quoted if it looks like a number) or a map { file }, not 5',
  ]);
  const one = { oneOf: [{ required: ['command'] }, { required: ['url'] }] };
  const either = { command: { type: 'string' }, url: { type: 'string' } } as const;
  t.same(faults(either, {}, one), [': must be a map with "command" or a map with "url"']);
  t.same(faults(either, { command: 'x', url: 'y' }, one), [': must be only one of a map with "command" or a map with "url"']);
});

t.test('secrets and values of variables are never printed', async (t) => {
  const schema = new OptionSchema({
    type: 'object',
    properties: {
      key: { type: 'string', secret: true, minLength: 99, pattern: '^sk' },
      headers: { type: 'object', additionalProperties: { type: 'boolean' }, secret: true },
      mode: { enum: ['a', 'b', 'c', 'd'] },
    },
  });
  const { value, references } = interpolate({ key: 'hush', headers: { auth: 'hush' }, mode: `\${MODE}` }, { MODE: 'hush' });
  const checked = schema.check(value, references);
  t.equal(checked.faults.length, 4);
  t.notMatch(checked.faults.map(({ message }) => message).join(), /hush/);
  t.same(checked.secrets, ['hush', 'hush']);
});

t.test('a scalar that consists of one variable is converted to the schema’s type, and no other is', async (t) => {
  const schema = new OptionSchema({
    type: 'object',
    properties: {
      port: { type: 'integer' },
      rate: { type: 'number' },
      on: { type: 'boolean' },
      text: { type: 'string' },
      either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
      deep: {
        anyOf: [{ type: 'object', properties: { list: { type: 'array', items: { type: 'integer' } } } }, { type: 'null' }],
      },
    },
  });
  const check = (options: object) => {
    const { value, references } = interpolate(options, { N: '80', R: '-1.5e3', T: 'true', W: 'word' });
    return schema.check(value, references);
  };
  const { value, faults } = check({
    port: `\${N}`,
    rate: `\${R}`,
    on: `\${T}`,
    text: `\${N}`,
    either: `\${N}`,
    deep: { list: [`\${N}`, 1] },
  });
  t.same(faults, []);
  t.same(value, { port: 80, rate: -1500, on: true, text: '80', either: '80', deep: { list: [80, 1] } });
  t.equal(check({ port: `\${N}80` }).faults.length, 1, 'not where it is only a part');
  t.equal(check({ port: '80' }).faults.length, 1, 'not where there is no variable');
  t.equal(check({ port: `\${W}` }).faults.length, 1, 'not if the variable is not a number');
  t.equal(check({ on: `\${N}` }).faults.length, 1);
});

t.test('a variable becomes what the values of an enum or a const are', async (t) => {
  const schema = new OptionSchema({
    type: 'object',
    properties: { level: { enum: [1, 2] }, on: { const: true }, empty: { enum: [null, '7'] } },
  });
  const { value, references } = interpolate({ level: `\${N}`, on: `\${T}`, empty: `\${S}` }, { N: '2', T: 'true', S: '7' });
  t.match(schema.check(value, references), { faults: [], value: { level: 2, on: true, empty: '7' } });
});

t.test('rule 3: a variable stays text where the schema wants no number and no boolean', async (t) => {
  const schema = new OptionSchema({
    type: 'object',
    properties: {
      body: { type: 'object', properties: { known: { type: 'number' } }, additionalProperties: true },
      any: { description: 'Anything.' },
      either: { anyOf: [{ type: 'object', additionalProperties: true }, { type: 'string' }] },
      mixed: { type: ['string', 'number'] },
    },
  });
  const options = { body: { deep: [{ x: `\${V}` }], known: `\${V}` }, any: `\${V}`, either: { x: `\${V}` }, mixed: `\${V}` };
  const { value, references } = interpolate(options, { V: '12' });
  const { faults, value: checked } = schema.check(value, references);
  t.same(faults, []);
  t.same(checked, { body: { deep: [{ x: '12' }], known: 12 }, any: '12', either: { x: '12' }, mixed: '12' });
});

t.test('defaults are filled in, the result is frozen, and the input is unchanged', async (t) => {
  const given = { list: [{}] };
  const item = { type: 'object', properties: { n: { type: 'number', default: 1 } } } as const;
  const { value } = new OptionSchema({
    type: 'object',
    properties: { list: { type: 'array', items: item }, port: { type: 'number', default: 80 } },
  }).check(given);
  t.same(value, { list: [{ n: 1 }], port: 80 });
  t.same(given, { list: [{}] });
  t.throws(() => Object.assign((value.list as object[])[0] ?? {}, { n: 2 }), TypeError);
});

t.test('an unset variable is not reported as a schema fault too', async (t) => {
  const text = { type: 'string', minLength: 1 } as const;
  const schema = new OptionSchema({
    type: 'object',
    properties: { n: { type: 'number' }, m: { type: 'number' }, keys: { anyOf: [text, { type: 'array', items: text }] } },
  });
  const missing = `\${MISSING}`;
  const { value, references } = interpolate({ n: missing, m: 'x', keys: ['a', missing, ''], k: missing }, {});
  t.same(
    schema.check(value, references).faults.map(({ path }) => path),
    [['keys', 2], ['k'], ['m']],
  );
});

t.test('an invalid schema is refused', async (t) => {
  const refused = (schema: unknown) => t.throws(() => new OptionSchema(schema as JsonSchema));
  refused({ type: 'object', proprties: {} });
  refused({ type: 'object', properties: { a: { type: 'strng' } } });
  refused({ type: 'object', properties: { a: { type: 'string', format: 'colour' } } });
  refused({ type: 'object', properties: { a: { type: 'number', minimum: '5' } } });
});

t.test('a schema that the build compiled decides for its own schema only', async (t) => {
  const schema = { type: 'object', properties: { port: { type: 'integer', default: 1 } } } as const;
  const digest = digestOf(closed(schema));
  const create = () => (options: unknown) => {
    const { port } = options as { port?: unknown };
    Object.assign(options as object, { filled: true });
    return port !== 'x';
  };
  const compiled = new OptionSchema(schema, { digest, create });
  t.same(compiled.check({ port: 7 }), { value: { port: 7, filled: true }, faults: [], secrets: [] });
  t.match(compiled.check({ port: 'x' }), { value: { port: 'x', filled: undefined }, faults: [{ path: ['port'], at: 'value' }] });
  t.same(new OptionSchema(schema, { digest: 'of another', create }).check({}).value, { port: 1 });
});
