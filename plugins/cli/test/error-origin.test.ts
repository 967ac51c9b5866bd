import { PluginError, type PluginInfo } from '@plugboard/kernel/internal';
import t from 'tap';
import { originOf } from '../src/diagnosis/error-origin.js';

const plugin = (entry: string, path: string): PluginInfo => ({
  name: `plugin-${entry}`,
  version: '1.0.0',
  path,
  entry,
  provides: [],
});
const PLUGINS = [
  plugin('tools.a', '/app/node_modules/tool-a/dist/index.js'),
  plugin('plugins.b', '/app/b.mjs'),
  plugin('plugins.c', '/app/c.mjs'),
];

function failing(...files: string[]): Error {
  const error = new Error('x');
  error.stack = ['Error: x', ...files.map((file) => `    at run (${file}:3:14)`)].join('\n');
  return error;
}

t.test('an error comes from the first plugin on its stack', async (t) => {
  const of = (...files: string[]) => originOf(failing(...files), PLUGINS)?.entry;
  t.equal(of('node:internal/timers', 'file:///app/node_modules/tool-a/dist/deep/run.js', 'file:///app/b.mjs'), 'tools.a');
  t.equal(of('file:///app/c.mjs'), 'plugins.c');
  t.equal(of('/app/node_modules/pg/lib/client.js', '/app/b.mjs'), 'plugins.b', 'a library that a plugin uses');
  t.equal(of('/app/lib/shared.js'), 'plugins.b, plugins.c', 'a file beside two plugins');
  t.equal(of('node:net', '/elsewhere/x.js', 'file:///%'), undefined);
});

t.test('an error comes from the plugin of its cause if it has no plugin itself', async (t) => {
  const outer = failing('node:net');
  outer.cause = failing('/app/b.mjs');
  t.same(originOf(outer, PLUGINS), { plugin: 'plugin-plugins.b', entry: 'plugins.b' });
  outer.cause = outer;
  t.equal(originOf(outer, PLUGINS), undefined, 'a circle of causes ends');
});

t.test('an error of the host names its entry itself, and other values none', async (t) => {
  const identity = { name: 'tool-x', version: '1.0.0', path: '/x.js' };
  const error = new PluginError('tools.x', identity, { code: 'STOP_FAILED', message: 'did not stop' });
  t.same(originOf(error, PLUGINS), { plugin: 'tool-x', entry: 'tools.x' });
  t.equal(originOf('text', PLUGINS), undefined);
  t.equal(originOf(undefined, PLUGINS), undefined);
});
