import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pluginContract, toolSourceContract } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { entry, filesystem } from './entry.js';

/** The official file system server, over a folder with one file. */
async function started(t: Test) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-')));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'greeting.txt'), 'Hello, reader.');
  const files = entry(t, filesystem(folder));
  await files.start();
  return { files, folder };
}

t.test('the official file system server works', async (t) => {
  const { files, folder } = await started(t);
  t.ok(files.names().includes('read_text_file'));
  t.equal(files.tool('read_text_file').effect, 'read');
  t.equal(files.tool('write_file').effect, 'write', 'it destroys what the file had');
  t.equal(await files.text('read_text_file', { path: join(folder, 'greeting.txt') }), 'Hello, reader.');
  await files.call('write_file', { path: join(folder, 'reply.txt'), content: 'Hello, writer.' });
  t.equal(readFileSync(join(folder, 'reply.txt'), 'utf8'), 'Hello, writer.');
  t.match(await files.call('read_text_file', { path: '/etc/passwd' }), { isError: true, content: [{ text: /Access denied/ }] });
});

t.test('fulfils the tool source contract', async (t) => {
  const { files, folder } = await started(t);
  const calls = [
    { tool: 'list_directory', input: { path: folder } },
    { tool: 'read_media_file', input: { path: join(folder, 'greeting.txt') } },
  ] as const;
  toolSourceContract(t.test, { open: () => files.source, calls: [calls[0], calls[1]] });
});

t.test('fulfils the plugin contract', async (t) => {
  const options = { config: { command: 'some-server' }, packageDir: new URL('..', import.meta.url) };
  pluginContract(t.test, plugin, options);
});
