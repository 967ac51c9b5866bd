import { createRedactor } from '@plugboard/kernel';
import { SequentialIds } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { secretProblem } from '../src/tokens/configured-secret.js';
import { hintOf, newToken, tokenProblem } from '../src/tokens/token-format.js';
import { TOKEN } from './token-fixtures.js';

t.test('the checksum is CRC-32 in base 62, most significant digit first', async (t) => {
  t.equal(tokenProblem(TOKEN), undefined);
  t.equal(hintOf(TOKEN), 'svcp_Hhdw…S4zk');
  t.equal(newToken('a', new SequentialIds()), 'svca_0000000000000000000000000000000137m19E');
});

t.test('every new token has the format; checksums are padded to six digits', async (t) => {
  const ids = new SequentialIds();
  const tokens = Array.from({ length: 2000 }, () => newToken('p', ids));
  for (const token of tokens) if (!/^svcp_[0-9A-Za-z]{38}$/.test(token) || tokenProblem(token)) t.fail(token);
  t.ok(
    tokens.some((token) => /^.{37}00/.test(token)),
    'some checksums begin with two zeros',
  );
});

t.test('distinguishes malformed tokens from wrong checksums', async (t) => {
  for (const value of [
    'svc',
    'svcp_',
    TOKEN.slice(0, -1),
    `${TOKEN}0`,
    TOKEN.replace('svcp', 'svcx'),
    `${TOKEN}\n`,
    TOKEN.replace('H', '-'),
  ]) {
    t.equal(tokenProblem(value), 'a malformed token', JSON.stringify(value));
  }
  for (let place = 5; place < TOKEN.length; place++) {
    const typo = TOKEN.slice(0, place) + (TOKEN[place] === 'x' ? 'y' : 'x') + TOKEN.slice(place + 1);
    t.equal(tokenProblem(typo), 'a token with a wrong checksum', typo);
  }
});

t.test('explains what is wrong with a secret without quoting it', async (t) => {
  for (const good of [TOKEN, 'a-secret-of-mine', '!'.repeat(512)]) t.equal(secretProblem(good), undefined);
  for (const [bad, message] of [
    ['', /^the secret is blank/],
    [' \t', /^the secret is blank/],
    ['fifteen-letters', /at least 16 characters, this one has 15/],
    ['x'.repeat(513), /at most 512 characters, this one has 513/],
    ['a secret with blanks', /without spaces/],
    ['a-secret-with-ü-in-it', /only printable ASCII/],
    [TOKEN.slice(0, -1), /^a malformed token: a value that begins with "svc"/],
    [`${TOKEN.slice(0, -1)}x`, /^a token with a wrong checksum/],
  ] as const) {
    const problem = secretProblem(bad) ?? '';
    t.match(problem, message);
    if (bad.length > 2) t.notOk(problem.includes(bad));
  }
});

t.test('the log redacts tokens by the declared pattern', async (t) => {
  const redact = createRedactor(plugin.credentials ?? {});
  for (const kind of ['p', 'a', 'e'] as const) t.equal(redact(`got ${newToken(kind, new SequentialIds())}.`), 'got [redacted].');
});
