/** Rule 1 of the configuration file: plugins. */
import { join } from 'node:path';
import t from 'tap';
import { KERNEL } from '../../../src/host/base/kernel-package.js';
import { bare, composed, installed, plugin, problemsOf } from '../distribution.js';

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
    server.inspection.plugins.map(({ entry, name, version }) => `${entry} ${name} ${version}`),
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
  t.equal(server.inspection.plugins.find(({ name }) => name === 'mine')?.path, join(t.testdirName, 'mine.js'));
});

t.test('rule 1: packages are found from the file’s folder, then the working folder, then the kernel’s own', async (t) => {
  const own = (version: string) => ({ node_modules: { '@acme': { thing: installed('@acme/thing', version, plugin()) } } });
  const only = (version: string) => ({ node_modules: { '@acme': { other: installed('@acme/other', version, plugin()) } } });
  const yaml = 'transports: { a: { use: "@acme/thing" }, b: { use: "@acme/other" } }\ntools: { clock: {} }\n';
  const dir = t.testdir({
    conf: { 'plugboard.yaml': yaml, ...own('1.0.0') },
    cwd: { node_modules: { '@acme': { ...own('2.0.0').node_modules['@acme'], ...only('3.0.0').node_modules['@acme'] } } },
  });
  const { compose } = await import('../../../src/host/compose.js');
  const server = await compose({ file: '../conf/plugboard.yaml', layout: bare, env: {}, cwd: join(dir, 'cwd') });
  t.same(
    server.inspection.plugins.map(({ entry, version }) => `${entry} ${version}`),
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
    server.inspection.plugins.map(({ entry, provides }) => [entry, provides]),
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
    'plugboard.yaml:3:3 tools.nowhere: the entry has no "use", so its key names the plugin, ' +
      'and @plugboard/tool-nowhere is not installed; add "use" with the name or the path of a plugin, ' +
      'or install the one you mean: @plugboard/tool-nowhere, plugboard-tool-nowhere or nowhere',
    'plugboard.yaml:4:18 tools.scoped.use: the plugin @acme/missing/deep is not installed; check the name, and install the package @acme/missing',
    `plugboard.yaml:5:16 tools.path.use: no plugin was found at ${join(at, 'missing.js')}`,
    new RegExp(`^plugboard.yaml:6:19 tools.unbuilt.use: .*${join(at, 'node_modules/@acme/unbuilt/dist/index.js')}`),
    /^plugboard.yaml:7:18 tools.hidden.use: the package @acme\/hidden cannot be loaded: /,
    'plugboard.yaml:8:20 tools.absolute.use: no plugin was found at /no/such/plugin',
    'plugboard.yaml:9:15 tools.url.use: "https://example.com/p.js" is not a valid plugin reference',
    `plugboard.yaml:10:18 tools.broken.use: the plugin at ${join(at, 'broken.js')} cannot be loaded: ` +
      `Cannot find package 'not-installed-either' imported from ${join(at, 'broken.js')}`,
    `plugboard.yaml:11:17 tools.other.use: ${join(at, 'other.js')} is not a plugin: its default export is an object, ` +
      'which definePlugin() did not make; export the result of definePlugin()',
    `plugboard.yaml:12:17 tools.newer.use: the plugin newer 0.1.0 at ${join(at, 'newer.js')} needs plugin API 2, ` +
      `which @plugboard/kernel ${KERNEL.version} (plugin API 1) does not have; update @plugboard/kernel (the package.json of `,
    `plugboard.yaml:13:17 tools.older.use: the plugin older 0.1.0 at ${join(at, 'older.js')} was written for plugin API 0, ` +
      `which @plugboard/kernel ${KERNEL.version} (plugin API 1) no longer has; update the plugin`,
    `plugboard.yaml:14:20 tools.nameless.use: the plugin without a name 0.1.0 at ${join(at, 'nameless.js')} does not define name`,
    `plugboard.yaml:15:22 tools.schemaless.use: the plugin test-plugin 0.1.0 at ${join(at, 'schemaless.js')} does not ` +
      'define configSchema',
    `plugboard.yaml:16:19 tools.strange.use: the plugin strange 0.1.0 at ${join(at, 'strange.js')} has an invalid option ` +
      'schema: properties.a: type must be',
    'plugboard.yaml:17:1 sessions: the option "use" is missing',
  ]);
  t.equal(problems.length, 15);
});

t.test('rule 1: a plugin that is not found is answered with the module that the entry most likely means', async (t) => {
  const problems = await problemsOf(t, {
    'plugboard.yaml': [
      'transports: {}',
      'plugins:',
      '  polite: {}',
      '  sober: { use: polite }',
      '  bare: { use: polite.js }',
      '  below: { use: own/loud.mjs }',
      '  near: { use: ./own/no-word.ts }',
      '  other: { use: ./own/notes }',
      '  far: { use: ./nowhere/no-word.ts }',
    ].join('\n'),
    'polite.js': plugin({ name: 'polite' }),
    own: { 'loud.mjs': '', 'no-words.ts': '', 'notes.txt': '' },
  });
  const at = t.testdirName;
  t.match(problems, [
    'plugboard.yaml:3:3 plugins.polite: the entry has no "use", so its key names the plugin, ' +
      'and @plugboard/plugin-polite is not installed; add use: ./polite.js',
    'plugins.sober.use: the plugin @plugboard/plugin-polite is not installed, did you mean "./polite.js"?',
    'plugins.bare.use: the plugin @plugboard/plugin-polite.js is not installed, did you mean "./polite.js"?',
    'plugins.below.use: the plugin own/loud.mjs is not installed, did you mean "./own/loud.mjs"?',
    `plugins.near.use: no plugin was found at ${join(at, 'own/no-word.ts')}, did you mean "no-words.ts"?`,
    /plugins\.other\.use: no plugin was found at .*notes$/,
    /plugins\.far\.use: no plugin was found at .*no-word\.ts$/,
  ]);
});
