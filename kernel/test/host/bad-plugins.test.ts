import { join } from 'node:path';
import t, { type Test } from 'tap';
import { KERNEL } from '../../src/host/base/kernel-package.js';
import { Loader } from '../../src/host/plugin/loader.js';
import { composed, plugin, problemsOf } from './distribution.js';

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
    /^plugboard.yaml:3:3 plugins.odd: cannot be registered: plugins.odd contributes "odd" to test.point twice; pass another name as the third argument of ctx.contribute, at .*odd-\d+.js:13:\d+ \(plugin test-plugin 0.1.0\)$/,
  ]);
  t.match(await problemsWith(t, plugin({ register: 'ctx.contribute(only, 1); ctx.contribute(only, 2);' })), [
    /plugins.odd contributes twice to test.only, which allows only one, at /,
  ]);
});

t.test('R-053 an entry that contributes nothing and does nothing is an error', async (t) => {
  const nothing =
    'plugboard.yaml:3:3 plugins.odd: cannot be registered: plugins.odd contributes nothing and has no start(); call ctx.contribute() in register(), or remove the entry from the configuration (plugin test-plugin 0.1.0)';
  t.same(await problemsWith(t, plugin({ register: 'return;' })), [nothing]);
  t.same(await problemsWith(t, plugin({ register: 'return { startLimit: 5 };' })), [nothing]);
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
      /^plugboard.yaml:3:15 plugins.odd.use: the plugin test-plugin at .*odd-\d+.js has an invalid option schema: /,
    );
    t.ok(problem.includes(`schema: ${fault}`), problem);
  }
  t.match(await problemsWith(t, plugin({ schema: '{ type: "object", properties: {}, minimun: 3 }' })), [
    /invalid option schema: strict mode: unknown keyword: "minimun"/,
  ]);
});

t.test('an invalid default blames the plugin and not the operator', async (t) => {
  const properties =
    '{ n: { type: "integer", default: "x" }, list: { type: "array", items: { type: "object", properties: { m: { type: "string", default: 5 } } } } }';
  t.same(await problemsWith(t, plugin({ properties }), ', list: [{}]'), [
    `plugboard.yaml:3:3 plugins.odd.n: the plugin's own default for this option is invalid (must be a whole number, not "x"); set the option, and report this to the plugin's author (plugin test-plugin 0.1.0)`,
    `plugboard.yaml:3:35 plugins.odd.list[0].m: the plugin's own default for this option is invalid (must be text (quoted if it looks like a number), not 5); set the option, and report this to the plugin's author (plugin test-plugin 0.1.0)`,
  ]);
  t.match(await problemsWith(t, plugin({ properties }), ', n: y'), [/plugins.odd.n: must be a whole number, not "y"/]);
});

t.test('a name that the kernel does not export is reported with the import path or the version that has it', async (t) => {
  t.match(await problemsWith(t, `import { textOf } from '@plugboard/kernel'; ${plugin()}`), [
    /imports "textOf", which @plugboard\/kernel \d+\.\d+\.\d+ does not export; import it from @plugboard\/kernel\/contracts$/,
  ]);
  const problems = await problemsOf(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./odd }\n',
    odd: {
      'package.json':
        '{ "name": "odd", "version": "3.0.0", "type": "module", "peerDependencies": { "@plugboard/kernel": ">=7.1" } }',
      'index.js': `import { beam } from '@plugboard/kernel/contracts'; ${plugin()}`,
    },
  });
  t.match(problems, [
    /index.js imports "beam", which @plugboard\/kernel\/contracts \(.*\) does not export; update @plugboard\/kernel \(the package.json of odd asks for >=7.1\)$/,
  ]);
  t.match(await problemsWith(t, `import { beam } from 'node:path'; ${plugin()}`), [/cannot be loaded: .*'beam'/]);
});

t.test('the error for a module without a plugin as its default export says what it exports', async (t) => {
  t.match(await problemsWith(t, plugin().replace('export default', 'export const odd =')), [
    /odd-\d+.js is not a plugin: definePlugin\(\) made its export "odd", not its default export; export the result of definePlugin\(\)/,
  ]);
  t.match(await problemsWith(t, 'export const x = 1;'), [
    /odd-\d+.js is not a plugin: it has no default export; export the result/,
  ]);
  t.match(await problemsWith(t, 'export default {};'), [
    /odd-\d+.js is not a plugin: its default export was not made by definePlugin\(\);/,
  ]);
  t.match(await problemsWith(t, plugin().replace('apiVersion: 1,', '')), [/does not define apiVersion, for example 1$/]);
  t.match(await problemsWith(t, `${plugin()}\nundefinedFunction();`), [
    /odd-\d+.js cannot be loaded: undefinedFunction is not defined, at .*odd-\d+.js:\d+:1$/,
  ]);
});

t.test('R-051 a module that never finishes loading is abandoned', async (t) => {
  const dir = t.testdir({ 'odd.js': 'await new Promise(() => {});' });
  await t.rejects(new Loader(dir, dir, 30).load('./odd.js', 'plugin'), {
    code: 'PLUGIN_IMPORT_TIMED_OUT',
    message: /odd.js was not loaded within 0.03 s: its module awaits something at the top level; await it in start\(\)/,
  });
});

t.test('errors are recognised across two copies of the kernel', async (t) => {
  const ours = await import('../../src/index.js');
  const { TurnError, VersionConflict } = await import('../../src/contracts/index.js');
  const { HostError, ModelError, StartError } = ours;
  class Foreign extends Error {}
  Object.defineProperty(Foreign.prototype, Symbol.for('plugboard.error.ModelError'), { value: true });
  t.ok(new Foreign() instanceof ModelError, 'an error of another copy');
  t.notOk(new Foreign() instanceof TurnError);
  t.ok(new StartError([]) instanceof HostError && new StartError([]) instanceof StartError, 'a subclass is also its base class');
  t.notOk(new HostError('POINT_EMPTY', 'x') instanceof StartError, 'a base class is not its subclass');
  t.notOk(new Error('x') instanceof VersionConflict);
  t.notOk((null as unknown) instanceof ModelError);
  class Special extends ModelError {}
  t.ok(new Special('x', { retryable: false }) instanceof Special, 'a subclass of a plugin');
  t.notOk(new ModelError('x', { retryable: false }) instanceof Special);
});

t.test('a second copy of the kernel is a warning with its version and path', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./odd.js }\n',
    'odd.js': `
      import { define } from '@plugboard/kernel';
      export default define({ name: 'odd', apiVersion: 1, configSchema: { type: 'object' }, register: () => ({ stop() {} }) });`,
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
  t.same(server.warnings, [
    `plugboard.yaml:3:3 plugins.odd: loads a second copy of the kernel, @plugboard/kernel 0.0.7 at ${copy}, beside ${KERNEL.version} at ${KERNEL.path}; make it a peerDependency of the plugin and run npm dedupe (plugin odd 0.1.0)`,
  ]);
});

t.test('deprecated plugins and options are warnings with what to use instead, also in the log', async (t) => {
  const properties = `{
    old: { type: 'string', deprecated: true, description: 'Set words instead.' },
    words: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer', deprecated: true } } } },
  }`;
  const { server, log } = await composed(t, {
    'plugboard.yaml':
      'transports: {}\nplugins:\n  odd: { use: ./odd.js, old: x, words: [{ n: 1 }] }\n  fine: { use: ./odd.js, optional: true }\n',
    'odd.js': plugin({ properties, more: "deprecated: 'use @you/even'," }),
  });
  const expected = [
    'plugboard.yaml:3:3 plugins.odd: the plugin is deprecated: use @you/even (plugin test-plugin 0.1.0)',
    'plugboard.yaml:3:25 plugins.odd.old: this option is deprecated: Set words instead. (plugin test-plugin 0.1.0)',
    'plugboard.yaml:3:43 plugins.odd.words[0].n: this option is deprecated (plugin test-plugin 0.1.0)',
    'plugboard.yaml:4:3 plugins.fine: the plugin is deprecated: use @you/even (plugin test-plugin 0.1.0)',
  ];
  t.same(server.warnings, expected);
  await server.start();
  t.same(
    log.lines.flatMap(({ level, msg }) => (level === 'warn' ? [msg] : [])),
    expected,
  );
});
