import { isBlankKey, sessionKeyProblem } from '@plugboard/kernel/contracts';
import t from 'tap';

t.test('a key may be any text and is returned unchanged', async (t) => {
  for (const word of ['a', ' a ', '../../etc/passwd', "'; DROP TABLE sessions; --", 'ann@example.org', 'é'.repeat(256), '👩‍🚀']) {
    t.equal(sessionKeyProblem(word), undefined, word);
  }
});

t.test('a key has at most 512 bytes, whole characters, and no control characters', async (t) => {
  t.equal(sessionKeyProblem('x'.repeat(512)), undefined);
  t.strictSame(sessionKeyProblem('x'.repeat(513)), { kind: 'too-long', bytes: 513, limit: 512 });
  t.strictSame(sessionKeyProblem('é'.repeat(257)), { kind: 'too-long', bytes: 514, limit: 512 });
  t.strictSame(sessionKeyProblem('a\ud800'), { kind: 'malformed', why: 'it contains an unpaired surrogate' });
  for (const character of ['\0', '\n', '\x7f', '\x9f']) {
    t.strictSame(sessionKeyProblem(`a${character}`), { kind: 'malformed', why: 'it contains a control character' });
  }
});

t.test('a blank key counts as absent', async (t) => {
  for (const word of ['', ' ', '\t\n', '\u3000']) t.ok(isBlankKey(word));
  t.notOk(isBlankKey(' a '));
});
