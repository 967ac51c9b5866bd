import { pluginContract } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';

t.test('keeps to the contract of plugins', async (t) => {
  for (const { name, run } of pluginContract(plugin, { packageDir: new URL('..', import.meta.url), entry: 'runtime' })) {
    await t.test(name, run);
  }
});
