import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ManualClock, pluginContract, sessionStoreContract, testContext } from '@plugboard/testing';
import plugin from '../src/index.ts';
import { StarterStore } from '../src/starter-store.ts';

const folder = await mkdtemp(join(tmpdir(), 'store-'));
after(() => rm(folder, { recursive: true }));

const clock = new ManualClock();
let count = 0;

async function openAt(path: string, at = clock) {
  const store = new StarterStore(path, at);
  await store.open();
  return { store, path };
}

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url), config: { path: './sessions.json' }, folder });

const paths = new WeakMap<object, string>();
async function opened(path: string) {
  const { store } = await openAt(path);
  const result = { store };
  paths.set(result, path);
  return result;
}
sessionStoreContract(test, {
  open: () => opened(join(folder, `${++count}.json`)),
  reopen: (before) => opened(paths.get(before) ?? ''),
  kill: () => {
    const path = join(folder, `${++count}.json`);
    const killed = fileURLToPath(new URL('killed.ts', import.meta.url));
    return {
      process: spawn(process.execPath, [...process.execArgv, killed, path]),
      open: () => openAt(path, new ManualClock(Date.now())),
    };
  },
  register: (folder) => testContext(plugin, { config: { path: './sessions.json' }, folder }),
  clock,
});

test('keeps its state if a change cannot be written', async () => {
  const { store, path } = await openAt(join(folder, 'lost', 'sessions.json'));
  const id = { project: 'acme', agent: 'helper', key: 'anna' };
  await store.commit(id, { expected: 0, messages: [{ role: 'user', content: 'one' }] });
  await rm(join(folder, 'lost'), { recursive: true });
  await writeFile(join(folder, 'lost'), 'a file where the folder was');
  await assert.rejects(store.commit(id, { expected: 1, messages: [{ role: 'user', content: 'two' }] }));
  assert.equal((await store.load(id)).version, 1);
  assert.equal((await store.health()).ok, false, path);
});
