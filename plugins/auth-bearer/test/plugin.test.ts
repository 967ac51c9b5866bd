import { pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';

t.test('fulfils the plugin contract', async (t) => {
  const options = {
    packageDir: new URL('..', import.meta.url),
    entry: 'auth.bearer',
    folder: t.testdir({}),
    config: { tokens: [{ name: 'ci', project: 'acme', token: 'a-secret-of-some-length' }] },
    check: { entries: (section: string) => ({ projects: ['acme'], agents: ['billing'] })[section] ?? [] },
  };
  pluginContract(t.test, plugin, options);
});
