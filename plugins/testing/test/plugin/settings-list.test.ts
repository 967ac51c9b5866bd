import type { JsonSchema } from '@plugboard/kernel';
import t from 'tap';
import { settingsList } from '../../src/index.js';

/** Of each line: the option, its type, and its default or `required`. */
function rows(properties: JsonSchema['properties'], required: readonly string[] = []): string[][] {
  const lines = settingsList({ type: 'object', properties, required }).split('\n');
  return lines.map((line) => /^- (`.*?`) \((.*?)(?:, (default .*|required))?\):/.exec(line)?.slice(1) ?? []);
}

t.test('the list says name, type, default and meaning', async (t) => {
  const schema: JsonSchema = {
    type: 'object',
    properties: {
      host: { type: 'string', description: 'Where it listens.', default: '127.0.0.1' },
      port: { type: 'integer', description: 'A port,\n  or 0.', minimum: 0, maximum: 65535 },
    },
    required: ['port'],
  };
  t.equal(
    settingsList(schema),
    '- `host` (string, default `127.0.0.1`): Where it listens.\n- `port` (integer, 0 to 65535, required): A port, or 0.',
  );
});

t.test('a plugin without options says so', async (t) => {
  t.equal(settingsList({ type: 'object', properties: {}, additionalProperties: false }), 'This plugin has no options.');
});

t.test('a default is written as in the file; an option without one is required or not', async (t) => {
  const found = rows({ a: { default: '' }, b: { default: false }, c: { default: ['x'] }, d: { default: {} }, e: {}, f: {} }, [
    'f',
  ]);
  t.same(
    found.map((row) => row[2]),
    ['default `""`', 'default `false`', 'default `["x"]`', 'default `{}`', undefined, 'required'],
  );
});

t.test('types are named as people write them', async (t) => {
  const types: Record<string, JsonSchema> = {
    any: {},
    '`a` or `b`': { enum: ['a', 'b'] },
    '`open`': { const: 'open' },
    duration: { type: 'string', format: 'duration' },
    size: { type: 'string', format: 'size' },
    URL: { type: 'string', format: 'url' },
    'string, secret': { type: 'string', secret: true },
    'string or null': { type: ['string', 'null'] },
    'string or list of `x` or `y`': { anyOf: [{ type: 'string' }, { type: 'array', items: { enum: ['x', 'y'] } }] },
    'boolean or duration': { oneOf: [{ type: 'boolean' }, { type: 'string', format: 'duration' }] },
    list: { type: 'array' },
    'list of strings': { type: 'array', items: { type: 'string' } },
    'map of numbers': { type: 'object', additionalProperties: { type: 'number' } },
    object: { type: 'object' },
    'number, at least 0': { type: 'number', minimum: 0 },
    'number, more than 0': { type: 'number', exclusiveMinimum: 0 },
    'number, at most 2': { type: 'number', maximum: 2 },
  };
  t.same(
    rows(types).map((row) => row[1]),
    Object.keys(types),
  );
});

t.test('a nested option has its own line, named by its path', async (t) => {
  const text = { type: 'string' } as const;
  const found = rows(
    {
      project: {
        type: 'object',
        properties: { claim: text, map: { type: 'object', additionalProperties: text } },
        required: ['claim'],
      },
      tokens: { type: 'array', items: { type: 'object', properties: { name: text } } },
      agents: { type: 'object', additionalProperties: { type: 'object', properties: { model: text } } },
      system: {
        anyOf: [text, { type: 'object', properties: { file: text } }, { type: 'object', properties: { file: text, url: text } }],
      },
    },
    ['tokens'],
  );
  t.same(
    found.map(([name, , fallback]) => `${name} ${fallback ?? 'none'}`),
    [
      '`project` none',
      '`project.claim` required',
      '`project.map` none',
      '`tokens` required',
      '`tokens[].name` none',
      '`agents` none',
      '`agents.*.model` none',
      '`system` none',
      '`system.file` none',
      '`system.url` none',
    ],
  );
});
