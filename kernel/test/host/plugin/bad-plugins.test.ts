import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { recognizeAcrossCopies } from '../../../src/host/base/across-copies.js';
import { KERNEL } from '../../../src/host/base/kernel-package.js';
import { Loader } from '../../../src/host/plugin/loader.js';
import { layout } from '../../../src/layout.js';
import { composed, plugin, problemsOf } from '../distribution.js';

/** A plugin in plain JavaScript, with the kernel's own extension points. */
function domainPlugin(name: string, register: string): string {
  return `
    import { definePlugin, Interceptors, SessionStores, ToolSources } from '@plugboard/kernel';
    export default definePlugin({
      name: '${name}', apiVersion: 1, summary: 'A plugin of a test', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        ${register}
      },
    });`;
}

let count = 0;

/**
 * The problems of a configuration with one plugin. Modules are cached, so each has its own file,
 * `odd-1.js`.
 */
async function problemsWith(t: Test, module: string, options = ''): Promise<string[]> {
  const file = `odd-${++count}.js`;
  return problemsOf(t, { 'plugboard.yaml': `transports: {}\nplugins:\n  odd: { use: ./${file}${options} }\n`, [file]: module });
}

t.test('R-053 the error for a name that is contributed twice says how to name the second value', async (t) => {
  t.match(await problemsWith(t, plugin({ register: 'ctx.contribute(point, 1); ctx.contribute(point, 2);' })), [
    new RegExp(
      '^plugboard.yaml:3:3 plugins.odd: cannot be registered: plugins.odd contributes "odd" to test.point twice; ' +
        'pass another name as the third argument of ctx.contribute, at .*odd-\\d+.js:13:\\d+ \\(plugin test-plugin 0.1.0\\)$',
    ),
  ]);
  t.match(await problemsWith(t, plugin({ register: 'ctx.contribute(only, 1); ctx.contribute(only, 2);' })), [
    /plugins.odd contributes twice to test.only, which allows only one, at /,
  ]);
});

t.test('R-053 an entry that contributes nothing and does nothing is an error', async (t) => {
  const nothing = new RegExp(
    '^plugboard.yaml:3:3 plugins.odd: cannot be registered: plugins.odd contributes nothing and has no start\\(\\); ' +
      'call ctx.contribute\\(\\) in register\\(\\), or remove the entry from the configuration ' +
      '\\(plugin test-plugin 0.1.0, /.*odd-\\d+.js\\)$',
  );
  t.match(await problemsWith(t, plugin({ register: 'return;' })), [nothing]);
  t.match(await problemsWith(t, plugin({ register: 'return { startLimit: 5 };' })), [nothing]);
});

t.test('R-053 a contribution of the wrong shape is refused where it is contributed, with its member', async (t) => {
  const mistakes = {
    'ctx.contribute(ToolSources, { tool: () => [] });': 'its member "tools" is missing; it must be a function',
    'ctx.contribute(ToolSources, { tools: [] });': 'its member "tools" is an array; it must be a function',
    'ctx.contribute(ToolSources, { tools: () => [], single: "yes" });': 'its member "single" is a string; it must be a boolean',
    'ctx.contribute(ToolSources, undefined);': 'it is undefined, not an object with "tools"',
    'ctx.contribute(ToolSources, () => []);': 'its member "tools" is missing; it must be a function',
    'ctx.contribute(Interceptors, {});': 'it is an object, not a function',
    'ctx.contribute(SessionStores, new Proxy({ idempotency: null }, { get: (own, key) => key in own ? own[key] : () => 0 }));':
      'its member "idempotency" is null; it must be an object',
  };
  for (const [register, mistake] of Object.entries(mistakes)) {
    const [problem = ''] = await problemsWith(t, domainPlugin('odd', register));
    t.match(problem, /plugins.odd: cannot be registered: plugins.odd contributes "odd" to agent\.[a-z-]+, but /, register);
    t.ok(problem.includes(`but ${mistake}, at ${join(t.testdirName, `odd-${count}.js`)}:6:`), problem);
  }
});

/** What each contribution belongs to, by the section it is in. */
const SECTIONS: Readonly<Record<string, { readonly use: string; readonly point: string; readonly name: string }>> = {
  auth: { use: '{ odd: { use: ./FILE } }', point: 'agent.auth-provider', name: 'an auth provider' },
  sessions: { use: '{ use: ./FILE }', point: 'agent.session-store', name: 'a session store' },
  models: { use: '{ odd: { use: ./FILE } }', point: 'agent.model-connector', name: 'a model connector' },
  tools: { use: '{ odd: { use: ./FILE } }', point: 'agent.tool-source', name: 'a tool source' },
  runtime: { use: '{ use: ./FILE }', point: 'agent.runtime', name: 'an agent runtime' },
};

t.test('an entry in the wrong section is refused, with what it contributes and where it belongs', async (t) => {
  const points: Record<string, string> = {
    auth: 'AuthProviders',
    sessions: 'SessionStores',
    models: 'ModelConnectors',
    tools: 'ToolSources',
    runtime: 'AgentRuntimes',
  };
  /** A value that every point accepts. */
  const value = `new Proxy({ single: true, timeout: '1s', asks: {}, isVolatile: false, shared: {}, model: '', provider: '', contextWindow: 1, input: [], idempotency: {}, documents: {} }, {
    get: (own, key) => (key in own ? own[key] : () => undefined) })`;
  const inSection = async (section: string, point: string, use = SECTIONS[section]?.use ?? '') => {
    const file = `odd-${++count}.js`; // modules are cached
    const [problem = ''] = await problemsOf(
      t,
      {
        'plugboard.yaml': `transports: {}\n${section}: ${use.replace('FILE', file)}\n`,
        [file]: plugin({ register: `ctx.contribute(${point}, ${value});` }).replace(
          'import { ',
          `import { ${Object.values(points).join(', ')}, Interceptors, `,
        ),
      },
      { layout },
    );
    return problem;
  };
  for (const [section, { point, name }] of Object.entries(SECTIONS)) {
    const [home, foreign] = section === 'tools' ? ['models', 'ModelConnectors'] : ['tools', 'ToolSources'];
    const found = SECTIONS[home];
    const problem = await inSection(section, foreign);
    t.match(
      problem,
      `cannot be registered: the plugin contributes ${found?.name} (${found?.point}), not ${name} (${point}); ` +
        `move the entry to ${home}, or correct its "use" (plugin test-plugin 0.1.0, `,
      section,
    );
    t.match(problem, section === 'sessions' || section === 'runtime' ? `yaml:2:1 ${section}: ` : `yaml:2:${section.length + 5} `);
    t.match(
      await inSection('plugins', points[section] ?? '', '{ odd: { use: ./FILE } }'),
      `the plugin contributes ${name} (${point}); move the entry to ${section}, or correct its "use"`,
    );
  }
  t.match(
    await inSection('models', 'defineExtensionPoint("test.thing", { discipline: "one" })'),
    'the plugin contributes test.thing, not a model connector (agent.model-connector); move the entry to transports or plugins',
  );
  t.match(
    await problemsOf(
      t,
      { 'plugboard.yaml': 'transports: {}\nmodels: { odd: { use: ./idle.js } }\n', 'idle.js': plugin() },
      { layout },
    ),
    [/must contribute a model connector \(agent.model-connector\); call ctx.contribute\(\) in register\(\) \(plugin/],
  );
});

t.test('what check and verify return is checked', async (t) => {
  for (const [returned, found] of Object.entries({
    undefined: 'undefined',
    '"x"': 'a string',
    '["x"]': 'an array with other values',
  })) {
    const result = `returned ${found}; it must return an array of { path, message }, empty if all is well (plugin test-plugin `;
    const [checked] = await problemsWith(t, plugin({ more: `check: () => ${returned},` }));
    t.match(checked, `plugboard.yaml:3:3 plugins.odd: the plugin's check() ${result}`);
    if (returned === 'undefined') continue; // `verify` may return nothing
    const [verified] = await problemsWith(t, plugin({ register: `return { verify: () => ${returned} };` }));
    t.match(verified, `plugboard.yaml:3:3 plugins.odd: the plugin's verify() ${result}`);
  }
});

t.test('what is thrown or passed in register without an Error or a point is named', async (t) => {
  t.match(await problemsWith(t, plugin({ register: 'throw "no wish";' })), [
    /plugins.odd: cannot be registered: it threw "no wish", which is not an Error \(plugin test-plugin 0.1.0, \/.*odd-\d+.js\)$/,
  ]);
  t.match(await problemsWith(t, plugin({ register: 'throw Object.create(null);' })), [/it threw a value without a text, which/]);
  for (const method of ['contribute', 'extensions', 'late'])
    t.match(await problemsWith(t, plugin({ register: `ctx.${method}(undefined, {});` })), [
      new RegExp(
        `ctx.${method}\\(\\) needs an extension point as its first argument, not undefined; import one, .*, at .*odd-\\d+.js:13:`,
      ),
    ]);
});

t.test('R-053 an invalid option schema is reported with the property', async (t) => {
  const schemas = {
    '{ words: { type: "array", items: { type: "string", minLenght: 3 } } }':
      'properties.words.items: strict mode: unknown keyword: "minLenght"',
    '{ size: "number" }': 'properties.size: ',
    '{ one: { anyOf: [{ type: "string" }, { type: "strng" }] } }': 'properties.one.anyOf.1: type must be',
    '{ map: { type: "object", additionalProperties: { format: "duration", type: "text" } } }':
      'properties.map.additionalProperties: type must be',
    '{ map: { type: "object", propertyNames: { pattern: "[" } } }': 'properties.map.propertyNames: Invalid regular expression',
  };
  for (const [properties, fault] of Object.entries(schemas)) {
    const [problem = ''] = await problemsWith(t, plugin({ properties }));
    t.match(
      problem,
      new RegExp(
        '^plugboard.yaml:3:15 plugins.odd.use: the plugin test-plugin 0.1.0 at .*odd-\\d+.js has an invalid option schema: ' +
          '.*; its author must correct configSchema there$',
      ),
    );
    t.ok(problem.includes(`schema: ${fault}`), problem);
  }
  t.match(await problemsWith(t, plugin({ schema: '{ type: "object", properties: {}, minimun: 3 }' })), [
    /invalid option schema: strict mode: unknown keyword: "minimun";/,
  ]);
});

t.test('an invalid default blames the plugin and not the operator', async (t) => {
  const properties =
    '{ n: { type: "integer", default: "x" }, list: { type: "array", items: { type: "object", properties: ' +
    '{ m: { type: "string", default: 5 } } } } }';
  const problems = await problemsWith(t, plugin({ properties }), ', list: [{}]');
  const from = `(plugin test-plugin 0.1.0, ${join(t.testdirName, `odd-${count}.js`)})`;
  t.same(problems, [
    `plugboard.yaml:3:3 plugins.odd.n: the plugin's own default for this option is invalid (must be a whole number, ` +
      `not "x"); set the option, and report this to the plugin's author ${from}`,
    `plugboard.yaml:3:35 plugins.odd.list[0].m: the plugin's own default for this option is invalid (must be text (quoted ` +
      `if it looks like a number), not 5); set the option, and report this to the plugin's author ${from}`,
  ]);
  t.match(
    await problemsWith(t, plugin({ properties, more: 'check: () => [],' })),
    [/n: the plugin's own default/],
    'also with a check',
  );
  t.match(await problemsWith(t, plugin({ properties }), ', n: y'), [/plugins.odd.n: must be a whole number, not "y"/]);
});

t.test('the error for a module without a plugin as its default export says what it exports', async (t) => {
  t.match(await problemsWith(t, plugin().replace('export default', 'export const odd =')), [
    /is not a plugin: definePlugin\(\) made its export "odd", not its default export; export the result of definePlugin\(\)/,
  ]);
  t.match(await problemsWith(t, 'export const x = 1;'), [
    /odd-\d+.js is not a plugin: it has no default export; export the result/,
  ]);
  const defaults = {
    '"I am a plugin"': 'the text "I am a plugin"',
    [`"${'x'.repeat(50)}"`]: 'a text',
    'class Plugin {}': 'a class',
    'function plugin() {}': 'a function',
    '() => {}': 'a function',
    'Promise.resolve({})': 'a promise',
    '[]': 'an array',
    null: 'null',
    '7': 'a number',
  };
  for (const [value, found] of Object.entries(defaults))
    t.match(await problemsWith(t, `export default ${value};`), [
      `is not a plugin: its default export is ${found}, which definePlugin() did not make; export the result`,
    ]);
  t.match(await problemsWith(t, 'export default {};'), [
    /odd-\d+.js is not a plugin: its default export is an object, which definePlugin\(\) did not make;/,
  ]);
  t.match(await problemsWith(t, plugin().replace('apiVersion: 1,', '')), [/does not define apiVersion, for example 1$/]);
  t.match(await problemsWith(t, `${plugin()}\nundefinedFunction();`), [
    /odd-\d+.js cannot be loaded: undefinedFunction is not defined, at .*odd-\d+.js:\d+:1$/,
  ]);
});

t.test('the error of a module that cannot be imported has its place', async (t) => {
  t.match(await problemsWith(t, 'throw new Error("no wish");'), [/odd-\d+.js cannot be loaded: no wish, at .*odd-\d+.js:1:7$/]);
  t.match(await problemsWith(t, `import 'not-there';\n${plugin()}`), [
    /odd-\d+.js cannot be loaded: Cannot find package 'not-there'/,
  ]);
});

t.test('R-051 a module that never finishes loading is abandoned', async (t) => {
  const dir = t.testdir({ 'odd.js': 'await new Promise(() => {});' });
  await t.rejects(new Loader(dir, dir, { importLimit: 30 }).load('./odd.js', 'plugin'), {
    code: 'PLUGIN_IMPORT_TIMED_OUT',
    message: /odd.js was not loaded within 0.03 s: its module awaits something at the top level; await it in start\(\)/,
  });
});

t.test('errors are recognised across two copies of the kernel', async (t) => {
  const ours = await import('../../../src/index.js');
  const { TurnError, VersionConflict } = await import('../../../src/contracts/index.js');
  const { ModelError, StartError } = ours;
  const { HostError } = await import('../../../src/host/base/errors.js');
  class Foreign extends Error {}
  Object.defineProperty(Foreign.prototype, Symbol.for('plugboard.error.ModelError'), { value: true });
  t.ok(new Foreign() instanceof ModelError, 'an error of another copy');
  t.notOk(new Foreign() instanceof TurnError);
  t.ok(new StartError([]) instanceof HostError && new StartError([]) instanceof StartError, 'a subclass is also its base class');
  t.notOk(new HostError('POINT_EMPTY', 'x') instanceof StartError, 'a base class is not its subclass');
  t.notOk(new Error('x') instanceof VersionConflict);
  t.notOk((null as unknown) instanceof ModelError);
  class Renamed extends Error {}
  recognizeAcrossCopies(Renamed, 'Original');
  t.equal(Renamed.name, 'Original', 'also if the build has renamed the class');
  class Special extends ModelError {}
  t.ok(new Special('x', { retryable: false }) instanceof Special, 'a subclass of a plugin');
  t.notOk(new ModelError('x', { retryable: false }) instanceof Special);
});

t.test('a second copy of the kernel is a warning with its version, its path and the cure', async (t) => {
  const kernel = () => ({
    'package.json': '{ "name": "@plugboard/kernel", "version": "0.0.7", "type": "module", "exports": "./index.js" }',
    'index.js': 'export const define = (plugin) => ({ ...plugin, [Symbol.for("plugboard.plugin")]: true });',
  });
  const module = `
    import { define } from '@plugboard/kernel';
    export default define({ name: 'odd', apiVersion: 1, configSchema: { type: 'object' }, register: () => ({ stop() {} }) });`;
  const packaged = (name: string, fields: string) => ({
    'package.json': `{ "name": "${name}", "version": "1.0.0", "type": "module", "exports": "./index.js", ${fields} }`,
    'index.js': module,
    node_modules: { '@plugboard': { kernel: kernel() } },
  });
  const peer = '"peerDependencies": { "@plugboard/kernel": ">=0.1.0 <1" }';
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  a: { use: ./own }\n  b: { use: ./fixed }\n  c: { use: installed }\n',
    own: packaged('own', peer),
    fixed: packaged('fixed', '"dependencies": { "@plugboard/kernel": "0.0.7" }'),
    node_modules: { installed: packaged('installed', peer) },
  });
  const at = t.testdirName;
  const own = `beside ${KERNEL.version} at ${KERNEL.path}`;
  const warning = (place: string, folder: string, cure: string) =>
    `plugboard.yaml:${place}: loads a second copy of the kernel, @plugboard/kernel 0.0.7 at ` +
    `${join(at, folder)}/node_modules/@plugboard/kernel, ${own}; ${cure} (plugin odd 1.0.0)`;
  t.same(server.inspection.warnings, [
    warning(
      '3:3 plugins.a',
      'own',
      'this is expected while you develop the plugin; to run it, run npm install --install-links ' +
        `${join(at, 'own')} in the server's folder, and write its name after "use"`,
    ),
    warning(
      '4:3 plugins.b',
      'fixed',
      `move it from dependencies to peerDependencies in ${join(at, 'fixed/package.json')}, then install the plugin again`,
    ),
    warning(
      '5:3 plugins.c',
      'node_modules/installed',
      `make it a peerDependency in ${join(at, 'node_modules/installed/package.json')}, then run npm dedupe`,
    ),
  ]);
});

t.test("a plugin in a server's folder, run by another program, is told to use the program of the folder", async (t) => {
  const kernel = {
    'package.json': '{ "name": "@plugboard/kernel", "version": "0.0.7", "type": "module", "exports": "./index.js" }',
    'index.js': 'export const define = (plugin) => ({ ...plugin, [Symbol.for("plugboard.plugin")]: true });',
  };
  const { server } = await composed(t, {
    'package.json': '{ "name": "my-agents", "version": "1.0.0", "dependencies": { "@plugboard/kernel": "0.0.7" } }',
    'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./plugins/odd.mjs }\n',
    plugins: {
      'odd.mjs': `
        import { define } from '@plugboard/kernel';
        const register = () => ({ stop() {} });
        export default define({ name: 'odd', apiVersion: 1, configSchema: { type: 'object' }, register });`,
    },
    node_modules: { '@plugboard': { kernel } },
  });
  const [warning = ''] = server.inspection.warnings;
  t.match(warning, "; run the program that is installed in the server's folder: npx plugboard (plugin odd 1.0.0)");
});

t.test('an option that belongs to the file is a mistake of the plugin', async (t) => {
  const schema = (names: string) => `{ ${names.split(' ').map((name) => `${name}: { type: 'string' }`)} }`;
  const problems = await problemsOf(t, {
    'plugboard.yaml':
      'transports: {}\ntools:\n  a: { use: ./a.js, timeout: 5s }\nplugins:\n  b: { use: ./b.js }\n  c: { use: ./a.js }\n',
    'a.js': plugin({ name: 'limited', properties: schema('timeout resultLimit words') }),
    'b.js': plugin({ name: 'unlessed', properties: schema('unless') }),
  });
  const mistake = (place: string, option: string, section: string) =>
    `plugboard.yaml:${place}: the plugin has an option "${option}", which every entry under ${section} has: it would never ` +
    'reach the plugin; its author must rename it';
  t.match(problems, [
    mistake('3:3 tools.a', 'timeout', 'tools'),
    mistake('3:3 tools.a', 'resultLimit', 'tools'),
    mistake('5:3 plugins.b', 'unless', 'plugins'),
  ]);
  t.equal(problems.length, 3, "in another section, timeout is the plugin's own");
});

t.test('a reload says that a plugin was updated on the disk', async (t) => {
  const manifest = (version: string) =>
    `{ "name": "greeter", "version": "${version}", "type": "module", "exports": "./index.js" }`;
  const { server, log } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  greeter: {}\n',
    node_modules: { greeter: { 'package.json': manifest('0.1.0'), 'index.js': plugin({ name: 'greeter' }) } },
  });
  await server.start();
  await server.reload();
  t.strictSame(log.lines, []);
  writeFileSync(join(t.testdirName, 'node_modules/greeter/package.json'), manifest('0.2.0'));
  t.match(await server.reload(), { changes: [], refused: undefined });
  t.match(log.lines, [
    {
      level: 'warn',
      msg:
        'plugboard.yaml:3:3 plugins.greeter: version 0.2.0 is installed, 0.1.0 runs: ' +
        'restart the server to use it (plugin greeter 0.1.0)',
    },
  ]);
});

t.test('the error of a plugin that fails with a second copy of the kernel names both copies and the cure', async (t) => {
  const [problem = ''] = await problemsOf(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./odd.js }\n',
    'odd.js': `
      import { define } from '@plugboard/kernel';
      const register = () => { throw new Error('TypeInfo not known'); };
      export default define({ name: 'odd', apiVersion: 1, configSchema: { type: 'object' }, register });`,
    node_modules: {
      '@plugboard': {
        kernel: {
          'package.json': '{ "name": "@plugboard/kernel", "version": "0.0.7", "type": "module", "exports": "./index.js" }',
          'index.js': 'export const define = (plugin) => ({ ...plugin, [Symbol.for("plugboard.plugin")]: true });',
        },
      },
    },
  });
  const copy = join(t.testdirName, 'node_modules/@plugboard/kernel');
  const copies = `(0.0.7 at ${copy}) than this program (${KERNEL.version} at ${KERNEL.path})`;
  t.match(problem, 'plugins.odd: cannot be registered: TypeInfo not known, at ');
  t.match(
    problem,
    `. It loads another copy of the kernel ${copies}; run the program that is installed in the server's folder: ` +
      'npx plugboard (plugin odd 0.1.0)',
  );
});

t.test('deprecated plugins and options are warnings with what to use instead, also in the log', async (t) => {
  const properties = `{
    old: { type: 'string', deprecated: true, description: 'Set words instead.' },
    words: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer', deprecated: true } } } },
  }`;
  const { server, log } = await composed(t, {
    'plugboard.yaml':
      'transports: {}\nplugins:\n  odd: { use: ./odd.js, old: x, words: [{ n: 1 }] }\n' +
      '  fine: { use: ./odd.js, optional: true }\n',
    'odd.js': plugin({ properties, more: "deprecated: 'use @you/even'," }),
  });
  const expected = [
    'plugboard.yaml:3:3 plugins.odd: the plugin is deprecated: use @you/even (plugin test-plugin 0.1.0)',
    'plugboard.yaml:3:25 plugins.odd.old: this option is deprecated: Set words instead. (plugin test-plugin 0.1.0)',
    'plugboard.yaml:3:43 plugins.odd.words[0].n: this option is deprecated (plugin test-plugin 0.1.0)',
    'plugboard.yaml:4:3 plugins.fine: the plugin is deprecated: use @you/even (plugin test-plugin 0.1.0)',
  ];
  t.same(server.inspection.warnings, expected);
  await server.start();
  t.same(
    log.lines.flatMap(({ level, msg }) => (level === 'warn' ? [msg] : [])),
    expected,
  );
});

t.test('contributions that no entry reads are a warning, if their point says what to add', async (t) => {
  const point = `defineExtensionPoint('test.unread', { discipline: 'in-order', unread: 'add a reader' })`;
  const contributes = plugin({ register: `ctx.contribute(${point}, ctx.name); ctx.contribute(point, 1);` });
  const files = {
    'contributes.js': contributes,
    'reads.js': plugin({ register: `ctx.late(${point});` }),
    'plugboard.yaml': 'transports: {}\nplugins:\n  a: { use: ./contributes.js }\n  b: { use: ./contributes.js }\n',
  };
  const { server, log } = await composed(t, files);
  const expected = ['plugboard.yaml:3:3: plugins.a, plugins.b contribute to test.unread, which no entry reads; add a reader'];
  t.same(server.inspection.warnings, expected);
  await server.start();
  t.match(log.lines, [{ level: 'warn', msg: expected[0] }]);
  const read = await composed(t, { ...files, 'plugboard.yaml': `${files['plugboard.yaml']}  c: { use: ./reads.js }\n` });
  t.same(read.server.inspection.warnings, []);
});

t.test('a contributor that only looks at its neighbours serves nothing', async (t) => {
  const point = `defineExtensionPoint('test.shown', { discipline: 'in-order', unread: 'add a reader' })`;
  const { server } = await composed(t, {
    'shows.js': plugin({ register: `ctx.late(${point}); ctx.contribute(${point}, ctx.name);` }),
    'plugboard.yaml': 'transports: {}\nplugins:\n  a: { use: ./shows.js }\n',
  });
  t.match(server.inspection.warnings, ['plugins.a contributes to test.shown, which no entry reads; add a reader']);
});
