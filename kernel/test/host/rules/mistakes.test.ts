/** Rules 4 to 6 of the configuration file: mistakes, paths, references. */
import { join } from 'node:path';
import t from 'tap';
import { layout } from '../../../src/layout.js';
import { bare, composed, plugin, problemsOf, withRuntime } from '../distribution.js';

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
    `plugboard.yaml:4:3 models.b: the plugin's check failed: oops, at ${join(t.testdirName, 'throws.js')}:13:49 (plugin throws 0.1.0)`,
  ]);
});

t.test('rule 4: a missing or unreadable file is a configuration error', async (t) => {
  t.same(await problemsOf(t, {}), [
    `plugboard.yaml: the file does not exist (${join(t.testdirName, 'plugboard.yaml')}); name another one with -c FILE`,
  ]);
  t.match(await problemsOf(t, { 'plugboard.yaml': {} }), [
    /^plugboard\.yaml: this is a folder \(.*\); name a file in it with -c FILE$/,
  ]);
  t.match(await problemsOf(t, { 'plugboard.yaml': 'transports: {', '.env': '' }), [
    /^plugboard.yaml:1:13: invalid YAML: the closing "}" is missing/,
  ]);
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
  const { compose } = await import('../../../src/host/compose.js');
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
  const store = plugin({
    register:
      'ctx.contribute(StoreOf, new Proxy({ isVolatile: true, shared: {} }, { get: (own, key) => own[key] ?? (() => undefined) }));',
  }).replace('import { ConfigFault', 'import { SessionStores as StoreOf, ConfigFault');
  const { server } = await composed(
    t,
    { 'plugboard.yaml': 'transports: {}\nsessions: { use: ./store.js }\nagents:\nmodels:\n', 'store.js': store },
    full,
  );
  t.same(
    server.inspection.plugins.map(({ entry }) => entry),
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
