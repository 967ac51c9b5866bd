import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { checkOptions } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { digestOf } from '../src/tokens/digest.js';
import { fileOf, record, TOKEN } from './token-fixtures.js';

const SECRET = 'a-secret-of-some-length';
const good = { name: 'ci', project: 'acme', token: SECRET };

function faults(t: Test, ...tokens: readonly object[]): readonly string[] {
  return checkOptions(plugin, { tokens, tokensFile: join(t.testdirName, 'tokens.json') }, around).faults;
}

/** The agent `billing` belongs to the project acme, `mine` to the default one. */
const around = {
  entries: (section: string, where?: { readonly project?: unknown }) => {
    if (section === 'projects') return ['acme'];
    return [
      ...(where === undefined || where.project === 'acme' ? ['billing'] : []),
      ...(where?.project === undefined ? ['mine'] : []),
    ];
  },
};

t.test('accepts plain and hashed tokens of known projects', async (t) => {
  t.same(
    faults(
      t,
      good,
      { name: 'ops', project: 'default', sha256: digestOf('another').toUpperCase(), expires: '2027-01-31', agents: ['mine'] },
      { name: 'issued', project: 'acme', token: TOKEN, scopes: ['admin'], requestsPerMinute: 1, runningTurns: 1 },
    ),
    [],
  );
});

t.test('refuses invalid tokens without quoting a secret', async (t) => {
  for (const [token, message] of [
    [{ ...good, token: '' }, 'tokens[0].token: the secret is blank; a token has 16 to 512 characters'],
    [{ ...good, token: '   ' }, 'tokens[0].token: the secret is blank; a token has 16 to 512 characters'],
    [{ ...good, token: undefined }, 'tokens[0]: the secret is missing: add "token", or "sha256" from "plugboard token hash"'],
    [{ ...good, sha256: digestOf(SECRET) }, 'tokens[0]: has both "sha256" and "token"; remove one of them'],
    [{ ...good, token: 'too-short' }, /^tokens\[0\]\.token: a token needs at least 16 characters, this one has 9/],
    [{ ...good, token: `${TOKEN.slice(0, -1)}x` }, /^tokens\[0\]\.token: a token with a wrong checksum/],
    [{ ...good, token: undefined, sha256: SECRET }, /^tokens\[0\]\.sha256: /],
    [{ ...good, project: undefined }, /^tokens\[0\]: the option "project" is missing/],
    [{ ...good, project: 'acne' }, /^tokens\[0\]\.project: unknown project "acne", did you mean "acme"\?/],
    [{ ...good, agents: ['billing', 'biling'] }, 'tokens[0].agents[1]: there is no agent "biling", did you mean "billing"?'],
    [{ ...good, agents: ['mine'] }, /^tokens\[0\]\.agents\[0\]: there is no agent "mine" in the project acme: /],
    [{ ...good, agents: [] }, /^tokens\[0\]\.agents: /],
    [{ ...good, scopes: ['chat', 'chatt'] }, /^tokens\[0\]\.scopes\[1\]: .*chat/],
    [{ ...good, expires: 'tomorrow' }, /^tokens\[0\]\.expires: /],
    [{ ...good, expires: '2027-02-30' }, /^tokens\[0\]\.expires: .* a date such as 2027-01-31, not "2027-02-30"/],
    [{ ...good, requestsPerMinute: 0 }, /^tokens\[0\]\.requestsPerMinute: /],
    [{ ...good, name: '' }, /^tokens\[0\]\.name: /],
    [{ ...good, name: 'two\nlines' }, /^tokens\[0\]\.name: /],
  ] as const) {
    const found = faults(t, JSON.parse(JSON.stringify(token)));
    t.equal(found.length, 1, JSON.stringify(found));
    t.match(found[0], message);
    t.notMatch(found.join(), SECRET);
  }
});

t.test('refuses duplicate names and duplicate secrets', async (t) => {
  t.same(faults(t, good, { ...good, token: `${SECRET}-2` }), [
    'tokens[1].name: the name "ci" is used twice; logs could not tell the tokens apart',
  ]);
  t.same(faults(t, good, { name: 'other', project: 'acme', sha256: digestOf(SECRET) }), [
    'tokens[1]: the same secret as "ci"; each name needs its own secret',
  ]);
  t.same(faults(t, { ...good, token: '' }, { ...good, name: 'x', token: '' }).length, 2, 'two blank secrets are not duplicates');
});

t.test('refuses a tokens file that is damaged or accessible to other users', async (t) => {
  const path = join(t.testdir({ 'tokens.json': fileOf(record()) }), 'tokens.json');
  chmodSync(path, 0o640);
  t.same(faults(t), [`tokensFile: the tokens file ${path} is accessible to other users (mode 640): run chmod 600 ${path}`]);
  chmodSync(path, 0o600);
  t.same(faults(t), []);
  const damaged = join(t.testdir({ 'tokens.json': '{' }), 'tokens.json');
  chmodSync(damaged, 0o600);
  t.match(faults(t), [/^tokensFile: the tokens file .* is damaged: it is not JSON/]);
});
