import { Ajv } from 'ajv';
import t from 'tap';
import { composed, plugin } from '../../../kernel/test/host/distribution.js';
import { serverSchema } from '../src/commands/schema.js';

const properties = `{
  text: { type: 'string', description: 'Some text.' },
  port: { type: 'integer', minimum: 1, default: 80 },
  on: { type: 'boolean' },
  key: { type: 'string', secret: true },
  mode: { enum: ['a', 'b'] },
  wait: { type: 'string', format: 'duration' },
  size: { type: 'string', format: 'size' },
  url: { type: 'string', format: 'url' },
  day: { type: 'string', format: 'date' },
  list: { type: 'array', items: { type: 'number' } },
  either: { oneOf: [{ type: 'integer' }, { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }] },
  headers: { type: 'object', additionalProperties: { type: 'string' } },
}`;

t.test('the schema of the whole file accepts and refuses the same files as the server', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': [
      'transports: { ./p.js: {} }',
      `models: { known: { use: ./p.js }, gone: { use: ./q.js, optional: true, text: "\${NONE}" }, lost: { use: nowhere, optional: true, text: "\${NONE}" } }`,
      'sessions: { use: ./p.js }',
    ].join('\n'),
    'p.js': plugin({ name: '@acme/plugin-p', properties }),
    'q.js': plugin({
      name: '@acme/plugin-q',
      schema: "{ type: 'object', properties: { q: { type: 'number' } }, required: ['q'] }",
    }),
  });
  const validate = new Ajv({ allowUnionTypes: true, keywords: ['patternErrorMessage'] }).compile(await serverSchema(server));
  const accepts = (file: object, why?: string) =>
    t.ok(validate({ transports: {}, ...file }), why ?? JSON.stringify([file, validate.errors]));
  const refuses = (file: object, why?: string) => t.notOk(validate({ transports: {}, ...file }), why ?? JSON.stringify(file));
  const options = (o: object) => ({ models: { any: { use: './p.js', ...o } } });

  accepts({ $schema: './plugboard.schema.json', models: null, auth: 'open', log: { level: 'debug' } });
  accepts(
    options({
      text: 'x',
      port: 1,
      on: true,
      key: 'k',
      mode: 'a',
      wait: '30s',
      size: '1mb',
      url: 'http://x',
      day: '2027-01-31',
      list: [1],
      either: { n: 1 },
      headers: { a: 'b' },
    }),
  );
  const variable = `\${NAME:-x}`;
  accepts(
    options({
      text: variable,
      port: variable,
      on: variable,
      key: variable,
      mode: variable,
      wait: variable,
      size: variable,
      url: `${variable}/v1`,
      day: variable,
      list: [variable],
      either: variable,
    }),
    'a variable is valid wherever something narrower than text is',
  );
  accepts({ log: { level: variable }, auth: variable });
  for (const wrong of [
    { text: 1 },
    { port: 'x' },
    { port: 0 },
    { on: 'x' },
    { mode: 'c' },
    { wait: '5' },
    { size: 5 },
    { url: 'x' },
    { day: 'x' },
    { list: ['x'] },
    { either: { m: 1 } },
    { unknown: 1 },
  ])
    refuses(options(wrong));

  accepts({ models: { known: null } });
  accepts({ models: { any: { use: './p.js', optional: variable, unless: ['known'] } } });
  refuses({ models: { any: { use: './p.js', optional: 'x' } } });
  accepts({ models: { any: { use: './q.js', q: 1 } } });
  refuses({ models: { any: { use: './q.js' } } }, 'the options of a disabled entry’s plugin are known too');
  accepts({ models: { any: { use: 'nowhere', what: 'ever' }, other: { what: 'ever' } } }, 'unknown plugins may have any options');
  accepts({ transports: { './p.js': { port: 1 } } });
  refuses({ transports: { './p.js': { port: 'x' } } }, 'an entry without use is served by the plugin of its name');
  refuses({ tools: { any: { timeout: 5 } } }, 'what a section’s entries share');
  accepts({ tools: { any: { timeout: '5s', resultLimit: variable } } });
  accepts({ sessions: { use: './p.js', port: 1 } });
  refuses({ sessions: { port: 1 } });
  refuses({ sessions: { use: './p.js', port: 'x' } });
  refuses({ modles: {} });
  refuses({ transports: undefined });
  refuses({ auth: 'shut' });
});

t.test('the schema completes names, hides secrets and explains formats', async (t) => {
  const { server } = await composed(t, {
    'package.json': '{ "type": "module" }',
    node_modules: { 'plugboard-model-own': {} },
    'plugboard.yaml': 'transports: { ./p.js: {} }\nmodels: { fast: { use: ./p.js }, slow: { use: ./p.js } }\n',
    'p.js': plugin({
      name: '@acme/plugin-p',
      properties: `{
        model: { type: 'string', nameOf: 'models', examples: ['any'], description: 'A model.' },
        key: { type: 'string', secret: true, description: 'The key.' },
        wait: { type: 'string', format: 'duration', description: 'Time to wait.' },
      }`,
    }),
  });
  const { properties, definitions } = (await serverSchema(server)) as unknown as {
    readonly properties: Readonly<Record<string, { readonly description?: string; readonly additionalProperties?: object }>>;
    readonly definitions: Readonly<Record<string, { readonly properties: Readonly<Record<string, object>> }>>;
  };
  for (const key of ['$schema', 'log']) t.match(properties[key]?.description, /\S.*\.$/, key);
  const options = definitions['models.@acme.plugin-p']?.properties ?? {};
  t.same(options.model, {
    description: 'A model.',
    anyOf: [{ enum: ['fast', 'slow', 'any'] }, { type: 'string', examples: ['any'] }],
  });
  t.same(options.key, { description: 'The key.', writeOnly: true, type: 'string' });
  t.match(options.wait, {
    description: 'Time to wait. A duration: a whole number with the unit ms, s, m, h or d, such as `30s`.',
    anyOf: [{ patternErrorMessage: /^A duration: a whole number/ }, {}],
  });
  const uses = JSON.stringify(properties.models?.additionalProperties);
  for (const name of ['./p.js', 'openai', 'own']) t.match(uses, `"${name}"`, `${name} is used or installed`);
});
