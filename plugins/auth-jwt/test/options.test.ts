import { checkOptions, pluginContract } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';

const project = { claim: 'org_id', map: { org_1: 'acme' } };
const options = { issuer: 'https://login.example.com', audience: 'https://agents.example.com', project };
const around = { entries: (section: string) => (section === 'projects' ? ['acme', 'tenant-1'] : []) };

function faults(changes: object): readonly string[] {
  return checkOptions(plugin, { ...options, ...changes }, around).faults;
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url), config: options, check: around });
});

t.test('S-13 issuer, audience and project are required and must not be empty', async (t) => {
  t.same(checkOptions(plugin, {}).faults, [
    'the option "issuer" is missing',
    'the option "audience" is missing',
    'the option "project" is missing',
  ]);
  t.same(faults({ issuer: '' }), ['issuer: must not be empty']);
  t.match(faults({ audience: '' }), [/^audience/]);
  t.match(faults({ audience: [] }), [/^audience/]);
  t.match(faults({ audience: [''] }), [/^audience/]);
  t.match(faults({ project: {} }), [/^project: the option "claim" is missing/]);
});

t.test('accepts only algorithms with public keys', async (t) => {
  for (const algorithm of ['none', 'HS256', 'HS512', 'RS1', 'rs256']) {
    t.match(faults({ algorithms: [algorithm] }), [/^algorithms\[0\]: must be .*"RS256"/], algorithm);
  }
  t.equal(faults({ algorithms: [] }).length, 1);
  t.same(faults({ algorithms: ['EdDSA', 'ES256'] }), []);
});

t.test('keys must come over https, or from this machine', async (t) => {
  for (const issuer of [
    'http://localhost:9000',
    'http://127.0.0.1:9000/realms/a',
    'http://[::1]:9000',
    'https://x.example.com/',
  ]) {
    t.same(faults({ issuer }), [], issuer);
    t.same(faults({ issuer: 'x', jwksUri: `${issuer}?p=1` }), [], issuer);
  }
  const insecure = 'must be https, except on this machine (localhost): the keys could be changed on the way over http';
  const otherwise = '; for an issuer with another name, set jwksUri to the address of its keys';
  for (const address of ['http://login.example.com', 'http://127.0.0.1.example.com', 'http://10.0.0.1', 'file:///etc/keys']) {
    t.same(faults({ issuer: address }), [`issuer: ${insecure}${otherwise}`]);
    t.same(faults({ jwksUri: address }), [`jwksUri: ${insecure}`]);
  }
  t.same(faults({ issuer: 'accounts.example.com' }), [`issuer: is not a valid URL${otherwise}`]);
  t.same(faults({ issuer: 'https://x.example.com?a=b' }), [`issuer: must have no query and no fragment${otherwise}`]);
  t.same(faults({ jwksUri: 'https://me:secret@x.example.com' }), ['jwksUri: must not hold a user name or password']);
});

t.test('a map or prefix gives the project, which must be in the file', async (t) => {
  const projectFaults = (changes: object) => faults({ project: { claim: 'org', ...changes } });
  t.same(projectFaults({ map: { a: 'acme', b: 'default' } }), []);
  t.same(projectFaults({ prefix: 'tenant-' }), []);
  t.same(projectFaults({ prefix: '' }), []);
  t.match(projectFaults({}), [/^project: needs map, .+ or prefix, /]);
  t.same(projectFaults({ map: { a: 'acme' }, prefix: '' }), ['project: takes either map or prefix, not both']);
  t.same(projectFaults({ map: { a: 'acme', b: 'acne' } }), ['project.map.b: unknown project "acne", did you mean "acme"?']);
  t.same(projectFaults({ prefix: 'tenat-' }), [
    'project.prefix: no project begins with "tenat-", so every token would be refused',
  ]);
  t.same(checkOptions(plugin, { ...options, project: { claim: 'org', prefix: '' } }).faults, [
    'project.prefix: there are no projects, so every token would be refused',
  ]);
});
