/** The rules of the configuration file, by their numbers. */
import { join } from 'node:path';
import t from 'tap';
import { KERNEL } from '../../src/host/base/kernel-package.js';
import { layout } from '../../src/layout.js';
import { bare, composed, installed, plugin, problemsOf, withRuntime } from './distribution.js';

/** A plugin that contributes its options. */
const contributesConfig = (parts: Parameters<typeof plugin>[0] = {}) =>
  plugin({ ...parts, register: 'ctx.contribute(point, ctx.config);' });

t.test('rule 1: use names the plugin, by short name, package or path', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': `
      transports: { one: {} }
      auth: { one: {} }
      sessions: { use: one }
      models: { fast: { use: one }, scoped: { use: "@acme/thing" }, below: { use: acme/deep } }
      tools: { one: , two: { use: ./mine.js }, three: { use: ./folder }, four: { use: ../${t.testdirName.split('/').pop()}/plain }, third: {}, itself: {}, absolute: { use: "${join(t.testdirName, 'mine.js')}" } }
      plugins: { one: {} }
    `,
    'mine.js': plugin({ name: 'mine' }),
    folder: installed('folder', '4.0.0', plugin({ name: 'folder' })),
    plain: { 'index.js': plugin({ name: 'plain' }) },
    node_modules: {
      '@plugboard': Object.fromEntries(
        ['transport', 'auth', 'store', 'model', 'tool', 'plugin'].map((prefix) => {
          const name = `@plugboard/${prefix}-one`;
          return [`${prefix}-one`, installed(name, '1.0.0', plugin({ name }))];
        }),
      ),
      '@acme': { thing: installed('@acme/thing', '2.0.0', plugin({ name: '@acme/thing' }), { '.': { import: './index.js' } }) },
      'plugboard-tool-third': installed('plugboard-tool-third', '5.0.0', plugin({ name: 'third' })),
      itself: installed('itself', '6.0.0', plugin({ name: 'itself' })),
      acme: installed('acme', '3.0.0', plugin({ name: 'acme' }), { './deep': './index.js' }),
    },
  });
  t.same(
    server.plugins.map(({ entry, name, version }) => `${entry} ${name} ${version}`),
    [
      'transports.one @plugboard/transport-one 1.0.0',
      'auth.one @plugboard/auth-one 1.0.0',
      'sessions @plugboard/store-one 1.0.0',
      'models.fast @plugboard/model-one 1.0.0',
      'models.scoped @acme/thing 2.0.0',
      'models.below acme 3.0.0',
      'tools.one @plugboard/tool-one 1.0.0',
      'tools.two mine 0.1.0',
      'tools.three folder 4.0.0',
      'tools.four plain 0.1.0',
      'tools.third third 5.0.0',
      'tools.itself itself 6.0.0',
      'tools.absolute mine 0.1.0',
      'plugins.one @plugboard/plugin-one 1.0.0',
    ],
    'also where a package has an entry for import only; a module without its own package has the version of the enclosing one',
  );
  t.equal(server.plugins.find(({ name }) => name === 'mine')?.path, join(t.testdirName, 'mine.js'));
});

t.test('rule 1: packages are found from the file’s folder, then the working folder, then the kernel’s own', async (t) => {
  const own = (version: string) => ({ node_modules: { '@acme': { thing: installed('@acme/thing', version, plugin()) } } });
  const only = (version: string) => ({ node_modules: { '@acme': { other: installed('@acme/other', version, plugin()) } } });
  const yaml = 'transports: { a: { use: "@acme/thing" }, b: { use: "@acme/other" } }\ntools: { clock: {} }\n';
  const dir = t.testdir({
    conf: { 'plugboard.yaml': yaml, ...own('1.0.0') },
    cwd: { node_modules: { '@acme': { ...own('2.0.0').node_modules['@acme'], ...only('3.0.0').node_modules['@acme'] } } },
  });
  const { compose } = await import('../../src/host/compose.js');
  const server = await compose({ file: '../conf/plugboard.yaml', layout: bare, env: {}, cwd: join(dir, 'cwd') });
  t.same(
    server.plugins.map(({ entry, version }) => `${entry} ${version}`),
    ['transports.a 1.0.0', 'transports.b 3.0.0', 'tools.clock 0.1.0'],
  );
});

t.test('rule 1: several entries of one plugin have their own options, and no other plugin is imported', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nmodels: { a: { use: ./p.js, n: 1 }, b: { use: ./p.js, n: 2 } }\n',
    'p.js': `globalThis.imported = (globalThis.imported ?? 0) + 1; ${contributesConfig({ properties: '{ n: { type: "number" } }' })}`,
    'unused.js': 'globalThis.unused = true; throw new Error("imported");',
  });
  t.same(
    server.plugins.map(({ entry, provides }) => [entry, provides]),
    [
      ['models.a', [{ point: 'test.point', name: 'a' }]],
      ['models.b', [{ point: 'test.point', name: 'b' }]],
    ],
  );
  t.match(globalThis, { imported: 1, unused: undefined });
});

t.test('rule 1: a plugin that cannot be used is reported with what is missing', async (t) => {
  const problems = await problemsOf(t, {
    'plugboard.yaml': [
      'transports: {}',
      'tools:',
      '  nowhere: {}',
      '  scoped: { use: "@acme/missing/deep" }',
      '  path: { use: ./missing.js }',
      '  unbuilt: { use: "@acme/unbuilt" }',
      '  hidden: { use: "@acme/hidden" }',
      '  absolute: { use: /no/such/plugin }',
      '  url: { use: "https://example.com/p.js" }',
      '  broken: { use: ./broken.js }',
      '  other: { use: ./other.js }',
      '  newer: { use: ./newer.js }',
      '  older: { use: ./older.js }',
      '  nameless: { use: ./nameless.js }',
      '  schemaless: { use: ./schemaless.js }',
      '  strange: { use: ./strange.js }',
      'sessions: {}',
    ].join('\n'),
    'broken.js': 'import "not-installed-either";',
    'other.js': 'export default { name: "other" };',
    'newer.js': plugin({ name: 'newer' }).replace('apiVersion: 1', 'apiVersion: 2'),
    'older.js': plugin({ name: 'older' }).replace('apiVersion: 1', 'apiVersion: 0'),
    'nameless.js': plugin().replace("name: 'test-plugin',", ''),
    'schemaless.js': plugin().replace(/configSchema: .*/, ''),
    'strange.js': plugin({ name: 'strange', properties: '{ a: { type: "strng" } }' }),
    node_modules: {
      '@acme': {
        unbuilt: { 'package.json': '{ "name": "@acme/unbuilt", "exports": "./dist/index.js" }' },
        hidden: { 'package.json': '{ "name": "@acme/hidden", "exports": { "./other": "./index.js" } }' },
      },
    },
  });
  const at = t.testdirName;
  t.match(problems, [
    'plugboard.yaml:3:3 tools.nowhere: the plugin @plugboard/tool-nowhere is not installed; run npm install @plugboard/tool-nowhere',
    'plugboard.yaml:4:18 tools.scoped.use: the plugin @acme/missing/deep is not installed; run npm install @acme/missing',
    `plugboard.yaml:5:16 tools.path.use: there is no plugin at ${join(at, 'missing.js')}`,
    new RegExp(`^plugboard.yaml:6:19 tools.unbuilt.use: .*${join(at, 'node_modules/@acme/unbuilt/dist/index.js')}`),
    /^plugboard.yaml:7:18 tools.hidden.use: the package @acme\/hidden cannot be loaded: /,
    'plugboard.yaml:8:20 tools.absolute.use: there is no plugin at /no/such/plugin',
    'plugboard.yaml:9:15 tools.url.use: "https://example.com/p.js" is not a valid plugin reference',
    `plugboard.yaml:10:18 tools.broken.use: the plugin at ${join(at, 'broken.js')} cannot be loaded: Cannot find package 'not-installed-either'`,
    `plugboard.yaml:11:17 tools.other.use: ${join(at, 'other.js')} is not a plugin: its default export was not made by definePlugin(); export the result of definePlugin()`,
    `plugboard.yaml:12:17 tools.newer.use: the plugin newer at ${join(at, 'newer.js')} needs plugin API 2, which @plugboard/kernel ${KERNEL.version} (plugin API 1) does not have; update @plugboard/kernel (the package.json of `,
    `plugboard.yaml:13:17 tools.older.use: the plugin older at ${join(at, 'older.js')} was written for plugin API 0, which @plugboard/kernel ${KERNEL.version} (plugin API 1) no longer has; update the plugin`,
    `plugboard.yaml:14:20 tools.nameless.use: the plugin without a name at ${join(at, 'nameless.js')} does not define name`,
    `plugboard.yaml:15:22 tools.schemaless.use: the plugin test-plugin at ${join(at, 'schemaless.js')} does not define configSchema`,
    `plugboard.yaml:16:19 tools.strange.use: the plugin strange at ${join(at, 'strange.js')} has an invalid option schema: properties.a: type must be`,
    'plugboard.yaml:17:1 sessions: the option "use" is missing',
  ]);
  t.equal(problems.length, 15);
});

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
    { name: 'b', value: 'value', entry: 'tools.b', shared: { timeout: '60s', resultLimit: '64kb' } },
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

t.test('rule 3: secrets are not logged', async (t) => {
  const env = { KEY: 'hush', LONG: 'a-long-value', HOST: 'a-long-host.example', SHORT: 'short' };
  const { log, server } = await composed(
    t,
    {
      'plugboard.yaml': `transports: {}\nmodels: { a: { use: ./p.js, key: written-down, other: "\${KEY}", url: "http://\${LONG}/v1", host: "\${HOST}", name: "\${SHORT}", set: "\${NONE:-a-long-default}" } }\n`,
      'p.js': plugin({
        properties:
          '{ key: { type: "string", secret: true }, other: { type: "string", secret: true }, url: {}, host: {}, name: {}, set: {} }',
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

t.test('rule 4: all errors of all entries are reported together', async (t) => {
  const problems = await problemsOf(
    t,
    {
      'plugboard.yaml': [
        'transports: {}',
        'transports: {}',
        'modles: {}',
        'auth: {}',
        'log: { level: loud }',
        'models:',
        '  a: { use: ./p.js, n: x }',
        '  b: { use: ./p.js, n: 1 }',
        '  c: { use: nothing-of-that-name }',
        '  d: { use: ./throws.js }',
        '  e: 5',
        `  f: { use: "\${F}" }`,
        '  g: { use: ./check-throws.js }',
        '  h: { use: ./p.js, optional: perhaps, unless: [z] }',
        'tools: 5',
        'plugins: [x]',
        'agents:',
        '  one: { model: b, maxSteps: x }',
        '  two: { model: zz, tools: [none] }',
        '  three: { tols: [] }',
        'defaultAgent: four',
      ].join('\n'),
      'p.js': plugin({
        properties: '{ n: { type: "integer" } }',
        more: 'check: ({ n }) => n === 1 ? [{ path: ["n"], message: "is not lucky" }] : [],',
      }),
      'throws.js': plugin({ name: 'throws', register: 'throw new Error("no wish to");' }),
      'check-throws.js': plugin({ name: 'check-throws', more: 'check() { throw new TypeError("oops"); },' }),
    },
    { layout: withRuntime },
  );
  const runtime = '(plugin @plugboard/agent-runtime';
  t.match(problems, [
    'plugboard.yaml:2:1 transports: this key occurs twice; remove one of them',
    'plugboard.yaml:3:1 modles: unknown section, did you mean "models"?',
    'plugboard.yaml:4:1 auth: this section is empty; add an entry, write "open", or remove the key',
    'plugboard.yaml:5:15 log.level: must be "trace", "debug", "info", "warn", "error", "fatal" or "silent", not "loud"',
    'plugboard.yaml:7:24 models.a.n: must be a whole number, not "x" (plugin test-plugin 0.1.0)',
    'plugboard.yaml:8:24 models.b.n: is not lucky (plugin test-plugin 0.1.0)',
    'plugboard.yaml:9:13 models.c.use: the plugin @plugboard/model-nothing-of-that-name is not installed',
    `plugboard.yaml:10:3 models.d: cannot be registered: no wish to, at ${join(t.testdirName, 'throws.js')}:13:29 (plugin throws 0.1.0)`,
    'plugboard.yaml:11:6 models.e: must be a map of options; write {} for none',
    'plugboard.yaml:12:13 models.f.use: the variable F is not set',
    `plugboard.yaml:13:3 models.g: the plugin's check failed: oops, at ${join(t.testdirName, 'check-throws.js')}:12:23 (plugin check-throws 0.1.0)`,
    'plugboard.yaml:14:31 models.h.optional: must be true or false, not "perhaps"',
    'plugboard.yaml:14:49 models.h.unless[0]: models has no other entry "z"; known: "a"',
    'plugboard.yaml:15:8 tools: must be a map',
    'plugboard.yaml:16:10 plugins: must be a map',
    `plugboard.yaml:18:30 agents.one.maxSteps: must be a whole number, not "x" ${runtime}`,
    'plugboard.yaml:19:17 agents.two.model: unknown model "zz"',
    'plugboard.yaml:19:29 agents.two.tools[0]: unknown tool "none"',
    `plugboard.yaml:20:3 agents.three: the option "model" is missing ${runtime}`,
    `plugboard.yaml:20:12 agents.three.tols: unknown option, did you mean "tools"? ${runtime}`,
  ]);
  t.equal(problems.length, 20);
});

t.test('rule 4: mistakes that depend on other entries are reported with their place', async (t) => {
  const files = {
    'plugboard.yaml': 'transports: {}\nmodels:\n  a: { use: ./p.js, n: 1 }\n  b: { use: ./throws.js }\n',
    'p.js': plugin({
      properties: '{ n: { type: "integer" } }',
      register: 'return { verify: () => [{ path: ["n"], message: "fits no other entry" }] };',
    }),
    'throws.js': plugin({ name: 'throws', register: 'return { verify() { throw new Error("oops"); } };' }),
  };
  t.match(await problemsOf(t, files), [
    'plugboard.yaml:3:24 models.a.n: fits no other entry (plugin test-plugin 0.1.0)',
    "plugboard.yaml:4:3 models.b: the plugin's check failed: oops (plugin throws 0.1.0)",
  ]);
});

t.test('rule 4: a missing or unreadable file is a configuration error', async (t) => {
  t.same(await problemsOf(t, {}), [
    `plugboard.yaml: the file does not exist (${join(t.testdirName, 'plugboard.yaml')}); name another one with -c FILE`,
  ]);
  t.same(await problemsOf(t, { 'plugboard.yaml': {} }), ['plugboard.yaml: the file cannot be read (EISDIR)']);
  t.match(await problemsOf(t, { 'plugboard.yaml': 'transports: {', '.env': '' }), [/^plugboard.yaml:1:14: invalid YAML: /]);
  t.match(await problemsOf(t, { 'plugboard.yaml': '- a\n' }), [
    /^plugboard.yaml:1:1: the file must be a map of sections: transports, /,
    /missing/,
  ]);
  t.match(await problemsOf(t, { 'plugboard.yaml': 'transports: {}\n', '.env': {} }), ['.env: the file cannot be read (EISDIR)']);
  t.same(await problemsOf(t, { 'plugboard.yaml': '' }), [
    'plugboard.yaml:1:1 transports: this section is missing or empty; without it, nothing can reach the server',
  ]);
  const elsewhere = t.testdir({ 'a.yaml': 'models: {}' });
  t.match(
    await problemsOf(t, {}, { file: 'a.yaml', cwd: elsewhere }),
    [/^a.yaml: the file does not exist/],
    'the folder of the test is made anew',
  );
  t.match(await problemsOf(t, {}, { file: '/nowhere/x.yaml' }), ['/nowhere/x.yaml: the file does not exist']);
});

t.test('rule 5: relative paths are relative to the file', async (t) => {
  const dir = t.testdir({
    conf: {
      'plugboard.yaml': 'transports: {}\nplugins: { a: { use: ./p.js } }\n',
      'p.js': plugin({
        more: 'check: (_, check) => (globalThis.paths = [check.resolvePath("x")], []),',
        register: 'globalThis.paths.push(ctx.resolvePath("./x"), ctx.resolvePath("../x"), ctx.resolvePath("/x"));',
      }),
    },
  });
  const { compose } = await import('../../src/host/compose.js');
  await compose({ file: 'conf/plugboard.yaml', layout: bare, env: {}, cwd: dir });
  t.match(globalThis, { paths: [join(dir, 'conf/x'), join(dir, 'conf/x'), join(dir, 'x'), '/x'] });
});

t.test('a plugin can read the other keys of the file when it registers', async (t) => {
  await composed(
    t,
    {
      'plugboard.yaml': `
transports: {}
projects: { acme: {} }
models: { disabled: { use: ./none.js, optional: true, key: "\${NONE}" } }
plugins: { a: { use: ./p.js } }
`,
      'p.js': plugin({ register: "globalThis.keys = ['projects', 'models', 'agents'].map((section) => ctx.entries(section));" }),
    },
    { layout },
  );
  t.match(globalThis, { keys: [['acme'], ['disabled'], []] });
});

t.test('rule 6: unknown references are errors, and every section except transports may be absent', async (t) => {
  const full = { layout: withRuntime };
  const store = plugin({ register: 'ctx.contribute(StoreOf, new Proxy({}, { get: () => () => undefined }));' }).replace(
    'import { ConfigFault',
    'import { SessionStores as StoreOf, ConfigFault',
  );
  const { server } = await composed(
    t,
    { 'plugboard.yaml': 'transports: {}\nsessions: { use: ./store.js }\nagents:\nmodels:\n', 'store.js': store },
    full,
  );
  t.same(
    server.plugins.map(({ entry }) => entry),
    ['sessions', 'runtime'],
  );
  t.match(
    await problemsOf(
      t,
      {
        'plugboard.yaml': [
          'transports: {}',
          'sessions: { use: ./store.js }',
          'models: { fast: { use: ./model.js } }',
          'tools: { clock: { use: ./model.js } }',
          'agents:',
          '  fast: { model: fast }',
          '  a: { model: fats, tools: [cluck, clock/x], project: acme }',
          '  b: { model: fast, project: none }',
          'projects: { acme: { defaultAgent: b } }',
          'defaultAgent: c',
        ].join('\n'),
        'store.js': store,
        'model.js': plugin(),
      },
      full,
    ),
    [
      /^plugboard.yaml:6:9 agents.fast: an agent and a model must not have the same name/,
      /^plugboard.yaml:7:15 agents.a.model: unknown model "fats", did you mean "fast"\?/,
      /^plugboard.yaml:7:29 agents.a.tools\[0\]: unknown tool "cluck", did you mean "clock"\?/,
      /^plugboard.yaml:8:30 agents.b.project: unknown project "none"/,
      /^plugboard.yaml:9:35 projects.acme.defaultAgent: agent "b" belongs to project "none"/,
      /^plugboard.yaml:10:15 defaultAgent: unknown agent "c"/,
    ],
  );
});

t.test('rule 7: an optional entry with an unset variable is disabled and reported with the cause', async (t) => {
  const { server, log } = await composed(
    t,
    {
      'plugboard.yaml': [
        'transports: {}',
        'models:',
        `  unset: { use: not-even-installed, optional: true, key: "\${UNSET}" }`,
        `  empty: { use: ./p.js, optional: true, key: "x\${EMPTY}" }`,
        `  default: { use: ./p.js, optional: true, key: "\${EMPTY:-d}" }`,
        `  set: { use: ./p.js, optional: "\${OPTIONAL}", key: "\${SET}" }`,
        `  plain: { use: ./p.js, key: "\${EMPTY}" }`,
      ].join('\n'),
      'p.js': plugin({
        properties: '{ key: { type: "string" } }',
        more: 'check: (_, check) => (globalThis.seen = [check.entries("models"), check.disabled("models")], []),',
      }),
    },
    { env: { EMPTY: '', SET: 's', OPTIONAL: 'true' } },
  );
  t.same(
    server.plugins.map(({ entry }) => entry),
    ['models.default', 'models.set', 'models.plain'],
  );
  t.match(globalThis, {
    seen: [
      ['unset', 'empty', 'default', 'set', 'plain'],
      ['unset', 'empty'],
    ],
  });
  t.same(server.keys('models'), ['unset', 'empty', 'default', 'set', 'plain']);
  await server.start();
  t.same(
    log.lines.map(({ msg }) => msg),
    ['models.unset is disabled: the variable UNSET is not set', 'models.empty is disabled: the variable EMPTY is empty'],
  );
  t.match(server.host.entries()[0], { entry: 'models.unset', status: 'disabled', reason: 'the variable UNSET is not set' });
});

t.test('rule 7: an optional entry that fails to start, or to register, is disabled', async (t) => {
  const { server, log } = await composed(t, {
    'plugboard.yaml':
      'transports: {}\ntools: { a: { use: ./starts-not.js, optional: true }, b: { use: ./registers-not.js, optional: true }, c: { use: ./p.js } }\n',
    'p.js': plugin({
      register:
        'ctx.contribute(point, 1); const view = ctx.extensions(point); return { start() { globalThis.view = view; globalThis.atStart = view.all().length } };',
    }),
    'starts-not.js': plugin({
      name: 'starts-not',
      register: 'ctx.contribute(point, 2); return { start() { throw new Error("no server"); } };',
    }),
    'registers-not.js': plugin({ name: 'registers-not', register: 'ctx.contribute(point, 3); throw new Error("no wish");' }),
  });
  await server.start();
  t.equal(server.host.phase, 'running');
  t.same(
    log.lines.map(({ msg }) => msg),
    [
      `tools.b is disabled: it cannot be registered: no wish, at ${join(t.testdirName, 'registers-not.js')}:13:55`,
      `disabled: tools.a did not start: no server (plugin starts-not 0.1.0, ${join(t.testdirName, 'starts-not.js')})`,
    ],
  );
  t.same(
    server.plugins.map(({ entry }) => entry),
    ['tools.c'],
    'its contributions are removed',
  );
  t.match(globalThis, { atStart: 1 });
});

t.test('rule 7: unless disables an entry if one of the named entries is enabled', async (t) => {
  const disabled = async (env: Record<string, string>) => {
    const { server } = await composed(
      t,
      {
        'plugboard.yaml': [
          'transports: {}',
          'models:',
          '  last: { use: ./p.js, unless: [demo, a] }',
          '  demo: { use: ./p.js, unless: [a, b] }',
          `  a: { use: ./p.js, optional: true, key: "\${A}" }`,
          `  b: { use: ./p.js, optional: true, key: "\${B}" }`,
        ].join('\n'),
        'p.js': plugin({ properties: '{ key: { type: "string" } }' }),
      },
      { env },
    );
    return server.host.entries().flatMap(({ entry, status, reason }) => (status === 'disabled' ? [`${entry}: ${reason}`] : []));
  };
  t.same(await disabled({}), [
    'models.last: models.demo is enabled',
    'models.a: the variable A is not set',
    'models.b: the variable B is not set',
  ]);
  t.same(
    await disabled({ B: 'b' }),
    ['models.demo: models.b is enabled', 'models.a: the variable A is not set'],
    'a disabled entry does not count',
  );
  t.same(await disabled({ A: 'a', B: 'b' }), ['models.last: models.a is enabled', 'models.demo: models.a is enabled']);
});

t.test('rule 7: entries under auth cannot be optional, and entries cannot depend on themselves', async (t) => {
  t.same(
    await problemsOf(t, {
      'plugboard.yaml':
        'transports: {}\nauth: { a: { use: ./p.js, optional: true } }\nmodels: { a: { use: ./p.js, unless: [b] }, b: { use: ./p.js, unless: [a] }, c: { use: ./p.js, unless: [c] } }\n',
      'p.js': plugin(),
    }),
    [
      'plugboard.yaml:2:27 auth.a.optional: an entry under auth cannot be optional: without it the server would be less protected than the file says',
      'plugboard.yaml:3:37 models.a.unless: these entries depend on each other: a unless b unless a',
      'plugboard.yaml:3:104 models.c.unless[0]: models has no other entry "c"; known: "a", "b"',
    ],
  );
});

t.test('an absent auth section or auth: open opens the server; an empty section is an error', async (t) => {
  const open = (auth: string) => composed(t, { 'plugboard.yaml': `transports: {}\n${auth}\n` }, { env: { AUTH: 'open' } });
  t.equal((await open('')).server.host.literal('auth'), undefined);
  t.equal((await open('auth: open')).server.host.literal('auth'), 'open');
  t.equal((await open(`auth: "\${AUTH}"`)).server.host.literal('auth'), 'open');
  const problem = async (auth: string) => problemsOf(t, { 'plugboard.yaml': `transports: {}\n${auth}\n` });
  const nothing = 'plugboard.yaml:2:1 auth: this section is empty; add an entry, write "open", or remove the key';
  t.same(await problem('auth:'), [nothing]);
  t.same(await problem('auth: {}'), [nothing]);
  t.match(await problem(`auth: "\${AUTH}"`), ['plugboard.yaml:2:7 auth: the variable AUTH is not set']);
  t.same(await problem('auth: closed'), ['plugboard.yaml:2:7 auth: must be a map or "open"']);
});
