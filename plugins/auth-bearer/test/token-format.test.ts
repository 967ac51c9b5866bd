import { createRedactor } from '@plugboard/kernel';
import { SequentialIds } from '@plugboard/kernel/testing';
import t from 'tap';
import plugin from '../src/index.js';
import { faultOfPlain } from '../src/plain-token.js';
import { faultOfForm, hintOf, newToken } from '../src/token-format.js';
import { TOKEN } from './issued.js';

t.test('the checksum of a token is CRC-32 in base 62, most significant digit first', async (t) => {
  t.equal(faultOfForm(TOKEN), undefined);
  t.equal(hintOf(TOKEN), 'svcp_Hhdw…S4zk');
  t.equal(newToken('a', new SequentialIds()), 'svca_0000000000000000000000000000000137m19E');
});

t.test('every new token has the form, and checksums are padded to six digits', async (t) => {
  const ids = new SequentialIds();
  const tokens = Array.from({ length: 2000 }, () => newToken('p', ids));
  for (const token of tokens) if (!/^svcp_[0-9A-Za-z]{38}$/.test(token) || faultOfForm(token)) t.fail(token);
  t.ok(
    tokens.some((token) => /^.{37}00/.test(token)),
    'one of them begins with two zeros',
  );
});

t.test('what has not the form is told from what has a wrong checksum', async (t) => {
  for (const value of [
    'svc',
    'svcp_',
    TOKEN.slice(0, -1),
    `${TOKEN}0`,
    TOKEN.replace('svcp', 'svcx'),
    `${TOKEN}\n`,
    TOKEN.replace('H', '-'),
  ]) {
    t.equal(faultOfForm(value), 'a malformed token', JSON.stringify(value));
  }
  for (let place = 5; place < TOKEN.length; place++) {
    const typo = TOKEN.slice(0, place) + (TOKEN[place] === 'x' ? 'y' : 'x') + TOKEN.slice(place + 1);
    t.equal(faultOfForm(typo), 'a token with a wrong checksum', typo);
  }
});

t.test('what is wrong with a token that somebody wrote down is said without repeating it', async (t) => {
  for (const good of [TOKEN, 'a-secret-of-mine', '!'.repeat(512)]) t.equal(faultOfPlain(good), undefined);
  for (const [bad, message] of [
    ['', /^the secret is blank/],
    [' \t', /^the secret is blank/],
    ['fifteen-letters', /at least 16 characters, and this one 15/],
    ['x'.repeat(513), /at most 512 characters, and this one 513/],
    ['a secret with blanks', /no blanks/],
    ['a-secret-with-ü-in-it', /of ASCII only/],
    [TOKEN.slice(0, -1), /^a malformed token: what begins with "svc"/],
    [`${TOKEN.slice(0, -1)}x`, /^a token with a wrong checksum/],
  ] as const) {
    const fault = faultOfPlain(bad) ?? '';
    t.match(fault, message);
    if (bad.length > 2) t.notOk(fault.includes(bad));
  }
});

t.test('the plugin declares the form of its tokens, so that no log line shows one', async (t) => {
  const redact = createRedactor(plugin.credentials ?? {});
  for (const kind of ['p', 'a', 'e'] as const) t.equal(redact(`got ${newToken(kind, new SequentialIds())}.`), 'got [redacted].');
});
