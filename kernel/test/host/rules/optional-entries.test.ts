/** Rule 7 of the configuration file: optional entries. */
import { join } from 'node:path';
import t from 'tap';
import { composed, plugin, problemsOf } from '../distribution.js';

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
    server.inspection.plugins.map(({ entry }) => entry),
    ['models.default', 'models.set', 'models.plain'],
  );
  t.match(globalThis, {
    seen: [
      ['unset', 'empty', 'default', 'set', 'plain'],
      ['unset', 'empty'],
    ],
  });
  t.same(server.inspection.keys('models'), ['unset', 'empty', 'default', 'set', 'plain']);
  await server.start();
  t.same(
    log.lines.map(({ msg }) => msg),
    [
      '2 entries are disabled, because their variables have no value; set one, for example in .env, to use its entry: ' +
        'models.unset (UNSET), models.empty (EMPTY)',
    ],
    'one line for all of them',
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
    server.inspection.plugins.map(({ entry }) => entry),
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

t.test('rule 7: what an entry keeps off stands in for it when it does not register or start', async (t) => {
  const parts = {
    'p.js': plugin({ register: 'ctx.contribute(point, 1, "answer"); ctx.contribute(only, 1); return {};' }),
    'reader.js': plugin({
      name: 'reader',
      register:
        'const view = ctx.extensions(point); return { start() { globalThis.found = view.all().map((one) => one.entry) } };',
    }),
    'starts-not.js': plugin({
      name: 'starts-not',
      register:
        'ctx.contribute(point, 2, "answer"); ctx.contribute(only, 2); return { start() { throw new Error("no server"); } };',
    }),
    'registers-not.js': plugin({ name: 'registers-not', register: 'throw new Error("no wish");' }),
  };
  const running = async (...models: readonly string[]) => {
    const { server } = await composed(t, {
      ...parts,
      'plugboard.yaml': ['transports: { r: { use: ./reader.js } }', 'models:', ...models].join('\n'),
    });
    await server.start();
    const of = (wanted: string) => server.host.entries().flatMap(({ entry, status }) => (status === wanted ? [entry] : []));
    return { server, running: of('running'), disabled: of('disabled') };
  };
  const reserves = ['  first: { use: ./p.js, optional: true, unless: [main] }', '  last: { use: ./p.js, unless: [main, first] }'];
  for (const broken of ['starts-not', 'registers-not']) {
    const main = `  main: { use: ./${broken}.js, optional: true }`;
    const { server, ...one } = await running(main, ...reserves);
    t.same(one, { running: ['transports.r', 'models.first'], disabled: ['models.main', 'models.last'] }, broken);
    t.match(globalThis, { found: ['models.first'] }, 'a reader finds it when it starts');
    await server.reload();
    t.match(globalThis, { found: ['models.first'] });
    t.match(
      server.host.entries().flatMap(({ entry, status }) => (status === 'running' ? [entry] : [])),
      ['transports.r', 'models.first'],
      'also after a reload, in which the other one is tried again',
    );
    const second = reserves.map((line) => line.replace('first: { use: ./p.js', `first: { use: ./${broken}.js`));
    const { server: _, ...two } = await running(main, ...second);
    t.same(two, { running: ['transports.r', 'models.last'], disabled: ['models.main', 'models.first'] }, 'and the next one');
  }
  const { server } = await composed(t, {
    ...parts,
    'plugboard.yaml': [
      'transports: {}',
      'models:',
      '  main: { use: ./starts-not.js, optional: true }',
      '  instead: { use: ./p.js, unless: [main], wrong: 1 }',
    ].join('\n'),
  });
  await t.rejects(server.start(), { message: /models\.instead\.wrong: unknown option/ }, 'a mistake in it ends the start');
  t.equal(server.host.phase, 'stopped');
});

t.test('rule 7: an optional entry without a package is disabled with what installs it, and unless replaces it', async (t) => {
  const files = {
    'package.json': '{ "type": "module", "dependencies": { "@plugboard/model-near": "1.0.0" } }',
    'plugboard.yaml': [
      'transports: {}',
      'models:',
      '  plugin: { use: far-away, optional: true }',
      '  scoped: { use: "@acme/far/away", optional: true }',
      '  named: { use: ./p.js, optional: true, provider: "@acme/none/sub" }',
      '  there: { use: ./p.js, optional: true, provider: "@acme/there", unless: [plugin] }',
      '  path: { use: ./p.js, optional: true, provider: ./q.js }',
      '  instead: { use: ./p.js, unless: [named] }',
      '  superfluous: { use: ./p.js, unless: [there] }',
    ].join('\n'),
    'p.js': plugin({ properties: '{ provider: { type: "string", format: "package" } }' }),
    'q.js': '',
    node_modules: { '@acme': { there: { 'package.json': '{ "name": "@acme/there" }' } } },
  };
  const { server, log } = await composed(t, files);
  await server.start();
  t.same(
    log.lines.map(({ msg }) => msg),
    [
      'models.plugin is disabled: the package @plugboard/model-far-away is not installed; check the name, then run: npm install @plugboard/model-far-away',
      'models.scoped is disabled: the package @acme/far is not installed; check the name, then run: npm install @acme/far',
      'models.named is disabled: the package @acme/none is not installed; check the name, then run: npm install @acme/none',
      'models.superfluous is disabled: models.there is enabled',
    ],
  );
  t.same(
    server.inspection.plugins.map(({ entry }) => entry),
    ['models.there', 'models.path', 'models.instead'],
  );
});

t.test(
  'rule 7: mistakes of an optional entry stay mistakes: a name like an installed one, a key without use, a path',
  async (t) => {
    t.match(
      await problemsOf(t, {
        'package.json': '{ "type": "module" }',
        node_modules: { '@plugboard': { 'model-near': {} } },
        'plugboard.yaml': [
          'transports: {}',
          'models:',
          '  a: { use: naer, optional: true }',
          '  b: { use: "@plugboard/model-naer", optional: true }',
          '  far: { optional: true }',
          '  c: { use: ./none.js, optional: true }',
          '  d: { use: ./p.js, optional: true, provider: ./none.js }',
          '  e: { use: ./p.js, provider: "@acme/none/sub" }',
          '  f: { use: ./p.js, optional: true, provider: "a b" }',
          '  g: { use: ./p.js, optional: true, provider: "@acme/none", wrong: 1 }',
        ].join('\n'),
        'p.js': plugin({ properties: '{ provider: { type: "string", format: "package" } }' }),
      }),
      [
        'models.a.use: the plugin @plugboard/model-naer is not installed, did you mean "near"?',
        'models.b.use: the plugin @plugboard/model-naer is not installed, did you mean "near"?',
        'models.far: the entry has no "use", so its key names the plugin, and @plugboard/model-far is not installed',
        'models.c.use: no plugin was found at ',
        'models.d.provider: there is no module at ',
        'models.e.provider: the package @acme/none is not installed; check the name, then run: npm install @acme/none',
        'models.f.provider: must be the name of a package such as @acme/greeter, or a path',
      ],
    );
  },
);

t.test('rule 7: a mistake that an optional entry finds when it starts stays a mistake', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\ntools: { a: { use: ./p.js, optional: true, key: old } }\n',
    'p.js': plugin({
      properties: '{ key: { type: "string" } }',
      register:
        'ctx.contribute(point, 1); return { start() { throw new ConfigFault([{ path: ["key"], message: "is too old" }]); } };',
    }),
  });
  await t.rejects(server.start(), { message: /^plugboard\.yaml:2:49 tools\.a\.key: is too old/ });
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

t.test('rule 7: a misspelt plugin is a mistake, wherever the file lies', async (t) => {
  const files = {
    site: { node_modules: { '@plugboard': { 'model-near': {} }, 'plugboard-model-remote': {} } },
    elsewhere: {
      'plugboard.yaml': [
        'transports: {}',
        'models:',
        '  a: { use: naer, optional: true }',
        '  b: { use: remoet, optional: true }',
        '  c: { use: no-such, optional: true }',
      ].join('\n'),
    },
  };
  const options = { cwd: join(t.testdirName, 'site'), file: '../elsewhere/plugboard.yaml' };
  const problems = await problemsOf(t, files, options);
  t.match(problems, [
    'models.a.use: the plugin @plugboard/model-naer is not installed, did you mean "near"?',
    'models.b.use: the plugin @plugboard/model-remoet is not installed, did you mean "remote"?',
  ]);
  t.equal(problems.length, 2, 'one that is like no other is only disabled');
});
