import { DEFAULT_SCOPES } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/kernel/testing';
import { assert, property, string } from 'fast-check';
import t from 'tap';
import { BearerProvider } from '../src/bearer-provider.js';
import { digestOf, sameDigest } from '../src/digest.js';
import { configuredToken, type KnownToken, knownToken } from '../src/known-token.js';
import { newToken } from '../src/token-format.js';
import { record, TOKEN } from './issued.js';

const clock = new ManualClock(Date.UTC(2026, 5, 1));
const PLAIN = 'hand-written-secret';

/** A provider over these tokens. `asked` is what the table was looked up by, `used` whom it let in. */
function provider(...tokens: readonly KnownToken[]) {
  const asked: string[] = [];
  const used: string[] = [];
  const find = (digest: string) => {
    asked.push(digest);
    return tokens.find(({ sha256 }) => sha256 === digest);
  };
  const bearer = new BearerProvider({ find }, clock, ({ id }) => used.push(id));
  return { ask: (text: string) => bearer.authenticate({ bearer: text }), asked, used };
}

const issued = (fields = {}, projects = ['default', 'acme']) => knownToken(record(fields), new Set(projects));

t.test('a token stands for its project, with its rights and limits', async (t) => {
  const { ask, used } = provider(
    issued({ agents: ['billing'], requestsPerMinute: 60, runningTurns: 4, expiresAt: '2026-06-01T00:00:00.001Z' }),
    configuredToken({ name: 'ops', project: 'default', token: PLAIN }),
  );
  t.same(ask(TOKEN), {
    principal: {
      project: 'acme',
      token: 'ci',
      tokenId: 'tok_0000000000000001',
      scopes: ['chat'],
      agents: ['billing'],
      limits: { requestsPerMinute: 60, runningTurns: 4 },
    },
  });
  const tokenId = `cfg_${digestOf(PLAIN).slice(0, 12)}`;
  t.same(ask(PLAIN), { principal: { project: 'default', token: 'ops', tokenId, scopes: DEFAULT_SCOPES } });
  t.same(used, ['tok_0000000000000001', tokenId]);
});

t.test('what begins with svc and is no token is refused before any look-up', async (t) => {
  const { ask, asked } = provider(issued());
  for (const [value, refused] of [
    [TOKEN.slice(0, -1), 'a malformed token'],
    [`${TOKEN}x`, 'a malformed token'],
    ['svc', 'a malformed token'],
    ["svcp_' OR 1=1 --", 'a malformed token'],
    [`svc${'x'.repeat(510)}`, 'a malformed token'],
    [`${TOKEN.slice(0, -1)}j`, 'a token with a wrong checksum'],
  ] as const) {
    t.same(ask(value), { refused }, value);
  }
  t.same(asked, []);
});

t.test('what is unknown is refused where it has our form, and left to other providers where it has not', async (t) => {
  const { ask, used } = provider(issued());
  t.same(ask(newToken('p', new SequentialIds())), { refused: 'an unknown token' });
  for (const value of [
    '',
    'sk-something',
    'eyJhbGciOiJSUzI1NiJ9.e30.c2ln',
    'x'.repeat(513),
    'x'.repeat(100_000),
    'ü'.repeat(257),
  ]) {
    t.equal(ask(value), undefined);
  }
  t.same(used, []);
});

t.test('a token that is revoked, expired, or of a project that is gone is refused', async (t) => {
  const refusal = (...known: readonly KnownToken[]) => provider(...known).ask(TOKEN);
  t.same(refusal(issued({ revokedAt: '2026-05-01T00:00:00.000Z' })), { refused: 'the token tok_0000000000000001 is revoked' });
  t.same(refusal(issued({ expiresAt: '2026-06-01T00:00:00.000Z' })), { refused: 'the token tok_0000000000000001 has expired' });
  t.same(refusal(issued({}, ['default'])), {
    refused: 'the token tok_0000000000000001 is of project "acme", which is not in the configuration',
  });
  t.match(refusal(configuredToken({ name: 'old', project: 'acme', token: TOKEN, expires: '2026-06-01' })), {
    refused: /^the token cfg_[0-9a-f]{12} has expired$/,
  });
  t.match(refusal(configuredToken({ name: 'old', project: 'acme', token: TOKEN, expires: '2026-06-02' })), {
    principal: { token: 'old' },
  });
});

t.test('S-05 whatever a caller writes, the table sees 64 hexadecimal digits', async (t) => {
  const { ask, asked } = provider(issued());
  assert(
    property(string({ unit: 'binary', maxLength: 600 }), (text) => void ask(text)),
    { numRuns: 3000 },
  );
  assert(
    property(string({ maxLength: 60 }), (text) => void ask(`svcp_${text}`)),
    { numRuns: 1000 },
  );
  for (const text of ["' OR '1'='1", '"; DROP TABLE tokens; --', '__proto__', '../../etc/passwd', '$(id)', TOKEN]) ask(text);
  t.ok(asked.length > 1000);
  t.same(
    asked.filter((digest) => !/^[0-9a-f]{64}$/.test(digest)),
    [],
  );
});

t.test('S-31 between the look-up and the answer stands a comparison of the whole digests', async (t) => {
  const nearly = digestOf(TOKEN).replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  const careless = new BearerProvider({ find: () => ({ ...issued(), sha256: nearly }) }, clock, () => t.fail('nobody is let in'));
  t.same(careless.authenticate({ bearer: TOKEN }), { refused: 'an unknown token' }, 'whatever the table finds');
  t.equal(careless.authenticate({ bearer: PLAIN }), undefined);
  t.equal(sameDigest(nearly, nearly), true);
  t.equal(sameDigest(nearly, nearly.slice(1)), false);
});
