import { pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});
