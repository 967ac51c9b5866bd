import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AuthProviders, type Credentials } from '@plugboard/kernel';
import { authProviderContract, pluginContract, testContext } from '@plugboard/testing';
import plugin from '../src/index.ts';

const config = { keys: [{ name: 'ci', key: 'key-of-the-tests' }] };
const provider = () => testContext(plugin, { config }).contributed(AuthProviders);
const credentials = (bearer: string): Credentials => ({ bearer, headers: { authorization: `Bearer ${bearer}` } });

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url), config });
authProviderContract(test, {
  open: provider,
  valid: credentials('key-of-the-tests'),
  foreign: credentials('another-token'),
  refused: [credentials('key-that-was-not-issued')],
});

test('names the key and the project of the caller', async () => {
  const result = await provider().authenticate(credentials('key-of-the-tests'), new AbortController().signal);
  assert.ok(result && 'principal' in result);
  assert.equal(result.principal.token, 'ci');
  assert.equal(result.principal.project, 'default');
});
