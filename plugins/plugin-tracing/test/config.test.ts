import { checkOptions, pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('refuses addresses that cannot work, and says what to do', async (t) => {
  const faults = (endpoint: string) => checkOptions(plugin, { endpoint }).faults;
  t.same(faults('http://10.0.0.7:4318'), []);
  t.same(faults('https://otlp.example.com/team/'), []);
  t.same(faults('https://otlp.example.com/v1/traces'), ['endpoint: ends with /v1/traces, which is added; remove it']);
  t.same(faults('https://ops:pw@otlp.example.com'), ['endpoint: contains a password; put it into headers']);
  t.same(faults('http://127.0.0.1:4318?key=1'), ['endpoint: has a query or a fragment; remove it']);
  t.match(faults('grpc://127.0.0.1:4317')[0], /^endpoint: /);
});

t.test('refuses a share beyond 1, and headers that are set for it', async (t) => {
  t.match(checkOptions(plugin, { sampleRatio: 1.5 }).faults[0], /^sampleRatio: /);
  t.same(checkOptions(plugin, { headers: { 'Content-Type': 'text/plain' } }).faults, [
    'headers.Content-Type: is set by the plugin; remove it',
  ]);
});
