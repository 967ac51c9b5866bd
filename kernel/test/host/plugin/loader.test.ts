import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineExtensionPoint } from '@plugboard/kernel';
import { CapturedLog } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { compose } from '../../../src/host/compose.js';
import { bare, plugin } from '../distribution.js';

const texts = defineExtensionPoint<string>('test.list', { discipline: 'in-order' });

async function composed(t: Test, config: object, cwd?: string) {
  const server = await compose({ config, layout: bare, logTo: new CapturedLog(), ...(cwd !== undefined && { cwd }) });
  t.teardown(() => server.stop());
  return server;
}

/** A package that is a plugin and imports a package of the server, which lists its name. */
const importing = (peer: string) => ({
  'package.json': JSON.stringify({ name: 'odd', version: '1.0.0', type: 'module', peerDependencies: { [peer]: '*' } }),
  'index.js': `import { text } from '${peer}';\n${plugin({ register: 'ctx.contribute(list, text);' })}`,
});

/** A package without a plugin. */
const exporting = (name: string, text: string) => ({
  'package.json': JSON.stringify({ name, version: '1.0.0', type: 'module', exports: './index.js' }),
  'index.js': `export const text = '${text}';`,
});

t.test('each server of a process provides its own packages to plugins outside of its folder', async (t) => {
  const folderOf = (text: string) => ({ node_modules: { '@plugboard': { shared: exporting('@plugboard/shared', text) } } });
  const folder = t.testdir({
    servers: { one: folderOf('of one'), two: folderOf('of two'), without: {} },
    plugins: { one: importing('@plugboard/shared'), two: importing('@plugboard/shared'), later: importing('@plugboard/shared') },
  });
  const textsOf = async (server: string, plugin: string) => {
    const config = { transports: {}, plugins: { odd: { use: join(folder, 'plugins', plugin) } } };
    return (await composed(t, config, join(folder, 'servers', server))).extensions(texts).all();
  };
  t.match(await textsOf('one', 'one'), [{ value: 'of one' }]);
  t.match(await textsOf('two', 'two'), [{ value: 'of two' }]);
  await t.rejects(
    textsOf('without', 'later'),
    /plugins\/later\/index\.js \(odd 1\.0\.0\) cannot be loaded: Cannot find package '@plugboard\/shared'/,
  );
  t.match(await textsOf('two', 'later'), [{ value: 'of two' }]);
});

const broken = {
  'a module that throws': "throw new Error('no licence');",
  'a syntax error': 'export default {',
  'a package that is not installed': "import 'not-installed';",
  'a missing export': "import { missing } from './part.js';",
  'a file that throws': "import './throwing.js';",
  'no default export': 'export const other = 1;',
  'a newer plugin API': plugin({ more: '' }).replace('apiVersion: 1', 'apiVersion: 99'),
};

t.test('a reload uses a plugin that was mended after an earlier reload was refused', async (t) => {
  const parts = { 'part.js': '', 'throwing.js': "throw new Error('no licence');" };
  const folders = t.testdir(
    Object.fromEntries(Object.entries(broken).map(([name, module]) => [name, { 'odd.js': module, ...parts }])),
  );
  for (const [name, module] of Object.entries(broken)) {
    const folder = join(folders, name);
    const server = await composed(t, { transports: {} });
    await server.start();
    const next = { transports: {}, plugins: { odd: { use: join(folder, 'odd.js') }, same: { use: join(folder, 'odd.js') } } };
    t.match(await server.reload(next), { refused: { code: 'CONFIG_INVALID' } }, name);
    t.match(await server.reload(next), { refused: { code: 'CONFIG_INVALID' } }, `${name}, unchanged`);

    await writeFile(join(folder, 'part.js'), 'export const missing = 1;');
    await writeFile(join(folder, 'throwing.js'), '');
    const [imports = ''] = /^import.*\.js';$/.exec(module) ?? [];
    await writeFile(join(folder, 'odd.js'), imports + plugin());
    t.equal((await server.reload(next)).refused, undefined, `${name}, mended`);
    t.same(
      server.inspection.plugins.map(({ entry }) => entry),
      ['plugins.odd', 'plugins.same'],
    );
  }
});
