/** Rules 2 and 3 of the configuration file: options and variables. */
import t from 'tap';
import { composed, plugin, problemsOf, withRuntime } from '../distribution.js';

t.test('rule 2: options are checked against the plugin’s schema, which fills in defaults', async (t) => {
  const properties = '{ model: { type: "string" }, maxTokens: { type: "integer", default: 9 } }';
  const register = 'ctx.contribute(point, ctx.config);';
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nmodels: { fast: { use: ./p.js, model: gpt } }\n',
    'p.js': plugin({
      properties,
      register,
      more: 'check: (config, check) => (globalThis.checked = { config, check, entries: check.entries("models") }, []),',
    }),
  });
  t.match(globalThis, { checked: { config: { model: 'gpt', maxTokens: 9 }, entries: ['fast'] } });
  t.ok(server);
  t.same(
    await problemsOf(t, {
      'plugboard.yaml':
        'transports: {}\nmodels:\n  fast:\n    use: ./q.js\n    modle: gpt\n    maxTokens: many\n    otional: true\n',
      'q.js': plugin({ name: '@plugboard/model-openai', properties }),
    }),
    [
      'plugboard.yaml:5:5 models.fast.modle: unknown option, did you mean "model"? (plugin @plugboard/model-openai 0.1.0)',
      'plugboard.yaml:6:16 models.fast.maxTokens: must be a whole number, not "many" (plugin @plugboard/model-openai 0.1.0)',
      'plugboard.yaml:7:5 models.fast.otional: unknown option, did you mean "optional"? (plugin @plugboard/model-openai 0.1.0)',
    ],
  );
});

t.test('rule 2: the shared options of a section are written beside the plugin’s own options', async (t) => {
  const { server } = await composed(
    t,
    {
      'plugboard.yaml': `transports: {}\ntools: { a: { use: ./p.js, timeout: "\${T}" }, b: { use: ./p.js } }\n`,
      'p.js': plugin({ register: 'ctx.contribute(point, "value");' }),
    },
    { env: { T: '5s' } },
  );
  const { defineExtensionPoint } = await import('@plugboard/kernel');
  const point = defineExtensionPoint<string>('test.point', { discipline: 'by-name' });
  t.same(server.extensions(point).all(), [
    { name: 'a', value: 'value', entry: 'tools.a', shared: { timeout: '5s', resultLimit: '64kb' } },
    { name: 'b', value: 'value', entry: 'tools.b', shared: { resultLimit: '64kb' } },
  ]);
  t.match(
    await problemsOf(t, { 'plugboard.yaml': 'transports: {}\ntools: { a: { use: ./p.js, timeout: 5 } }\n', 'p.js': plugin() }),
    ['plugboard.yaml:2:37 tools.a.timeout: must be a duration such as'],
  );
});

t.test('rule 3: variables come from the environment and from .env, and the environment wins', async (t) => {
  const { server } = await composed(
    t,
    {
      'plugboard.yaml': `transports: {}\nmodels: { a: { use: "./\${FILE}.js", port: "\${PORT}", on: "\${ON:-true}", text: "$\${PORT} \${BOTH}" } }\n`,
      '.env': 'PORT=8080\nBOTH=from the file\n',
      'p.js': plugin({
        properties: '{ port: { type: "integer" }, on: { type: "boolean" }, text: { type: "string" } }',
        register: 'globalThis.received = ctx.config;',
      }),
    },
    { env: { FILE: 'p', BOTH: 'from outside' } },
  );
  t.ok(server);
  t.match(globalThis, { received: { port: 8080, on: true, text: `\${PORT} from outside` } });
});

t.test('rule 3: an unset name without a default is an error that names the variable and the place', async (t) => {
  t.same(
    await problemsOf(
      t,
      {
        'plugboard.yaml': `transports: {}\nlog: { level: "\${LEVEL}" }\nmodels:\n  a: { use: ./p.js, n: "\${MISSING}", m: "\${", l: [1, "x\${OTHER}"] }\nagents: { b: { model: a, system: "\${PROMPT}" } }\n`,
        'p.js': plugin({ properties: '{ n: { type: "integer" }, m: {}, l: { type: "array" } }' }),
      },
      { layout: withRuntime },
    ),
    [
      `plugboard.yaml:2:15 log.level: the variable LEVEL is not set; set it, for example in .env, or write \${LEVEL:-default}`,
      `plugboard.yaml:4:24 models.a.n: the variable MISSING is not set; set it, for example in .env, or write \${MISSING:-default}`,
      `plugboard.yaml:4:41 models.a.m: "\${" starts neither \${NAME} nor \${NAME:-default}; write "$\${" for a literal "\${"`,
      `plugboard.yaml:4:54 models.a.l[1]: the variable OTHER is not set; set it, for example in .env, or write \${OTHER:-default}`,
      `plugboard.yaml:5:34 agents.b.system: the variable PROMPT is not set; set it, for example in .env, or write \${PROMPT:-default}`,
    ],
  );
});

t.test('rule 3: the check of a plugin does not see an option that is invalid, or whose variable is not set', async (t) => {
  t.same(
    await problemsOf(t, {
      'plugboard.yaml': `transports: {}\nmodels:\n  a: { use: ./p.js, url: "\${URL}", port: 0 }\n  b: { use: ./p.js, url: x }\n  c: { use: ./q.js, url: "\${URL}" }\n  d: { use: ./p.js, url: 5 }\n`,
      'p.js': plugin({
        properties: '{ url: { type: "string" }, port: { type: "integer" } }',
        more: `check: ({ url, port }) => [
          ...(url?.startsWith('http') ? [] : [{ path: ['url'], message: url ? 'is not an address' : 'is missing' }]),
          ...(port === 0 ? [{ path: ['port'], message: 'is not a port' }] : []),
        ],`,
      }),
      // Without a required option, its check does not run at all.
      'q.js': plugin({
        properties: '{ url: { type: "string" } }, required: ["url"]',
        more: 'check: ({ url }) => (new URL(url), []),',
      }),
    }),
    [
      `plugboard.yaml:3:26 models.a.url: the variable URL is not set; set it, for example in .env, or write \${URL:-default}`,
      'plugboard.yaml:3:42 models.a.port: is not a port (plugin test-plugin 0.1.0)',
      'plugboard.yaml:4:26 models.b.url: is not an address (plugin test-plugin 0.1.0)',
      `plugboard.yaml:5:26 models.c.url: the variable URL is not set; set it, for example in .env, or write \${URL:-default}`,
      'plugboard.yaml:6:26 models.d.url: must be text (quoted if it looks like a number), not 5 (plugin test-plugin 0.1.0)',
    ],
  );
});

t.test('rule 3: secrets are not logged', async (t) => {
  const env = { KEY: 'hush', LONG: 'a-long-value', HOST: 'a-long-host.example', SHORT: 'short', FOLDER: '/var/lib/data' };
  const { log, server } = await composed(
    t,
    {
      'plugboard.yaml': `transports: {}\nmodels: { a: { use: ./p.js, key: written-down, other: "\${KEY}", url: "http://\${LONG}/v1", host: "\${HOST}", name: "\${SHORT}", set: "\${NONE:-a-long-default}", path: "\${FOLDER}/a.db" } }\n`,
      'p.js': plugin({
        properties:
          '{ key: { type: "string", secret: true }, other: { type: "string", secret: true }, url: {}, host: {}, name: {}, set: {}, path: {} }',
        register: 'return { start: () => ctx.log.info(JSON.stringify(Object.values(ctx.config))) };',
      }),
    },
    { env },
  );
  await server.start();
  t.same(JSON.parse(log.lines[0]?.msg ?? ''), [
    '[redacted]',
    '[redacted]',
    'http://[redacted]/v1',
    'a-long-host.example',
    'short',
    'a-long-default',
    '/var/lib/data/a.db',
  ]);
  t.match(log.lines[0], { plugin: 'test-plugin', entry: 'models.a' });
});

t.test('rule 3: an entry may have the name of an option that is not secret, and its secrets are redacted', async (t) => {
  const env = { ONE: 'a-long-secret-of-one', TWO: 'a-long-secret-of-two', HOST: 'a-long-host.example' };
  const { log, server } = await composed(
    t,
    {
      'plugboard.yaml': `transports: {}\nmodels: { host: { use: ./p.js, address: "\${ONE}" }, system: { use: ./p.js, address: { host: "\${HOST}", login: "\${TWO}" } } }\n`,
      'p.js': plugin({
        properties: '{ address: {} }',
        register: 'return { start: () => ctx.log.info(JSON.stringify(ctx.config.address)) };',
      }),
    },
    { env },
  );
  await server.start();
  t.same(
    log.lines.map(({ msg }) => JSON.parse(msg)),
    ['[redacted]', { host: 'a-long-host.example', login: '[redacted]' }],
  );
});
