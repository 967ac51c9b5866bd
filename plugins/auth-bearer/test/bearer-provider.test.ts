import { DEFAULT_SCOPES } from '@plugboard/kernel/contracts';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import { assert, property, string } from 'fast-check';
import t from 'tap';
import { BearerProvider } from '../src/provider/bearer-provider.js';
import { EphemeralTokens } from '../src/provider/ephemeral-tokens.js';
import { digestOf, digestsEqual } from '../src/tokens/digest.js';
import { configuredToken, issuedToken, type KnownToken } from '../src/tokens/known-token.js';
import { newToken } from '../src/tokens/token-format.js';
import { record, TOKEN } from './token-fixtures.js';

const clock = new ManualClock(Date.UTC(2026, 5, 1));
const PLAIN = 'hand-written-secret';

const ephemeral = () => new EphemeralTokens({ clock, ids: new SequentialIds() }, { sharedState: undefined });

/**
 * A provider over these tokens. `asked` are the digests looked up, `used` the ids of accepted
 * tokens.
 */
function provider(...tokens: readonly KnownToken[]) {
  const asked: string[] = [];
  const used: string[] = [];
  const find = (digest: string) => {
    asked.push(digest);
    return tokens.find(({ sha256 }) => sha256 === digest);
  };
  const recordUse = ({ id }: KnownToken) => void used.push(id);
  const bearer = new BearerProvider({ find, recordUse, now: () => clock.now() }, ephemeral());
  return { ask: (text: string) => bearer.authenticate({ bearer: text, headers: {} }), asked, used };
}

const issued = (fields = {}, projects = ['default', 'acme']) => issuedToken(record(fields), new Set(projects));

t.test('identifies the caller with project, scopes, agents and limits', async (t) => {
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

t.test('refuses a malformed token without a look-up', async (t) => {
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

t.test('refuses an unknown issued token and leaves other values to other providers', async (t) => {
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

t.test('refuses a token that is revoked, expired or of an unknown project', async (t) => {
  const refusal = (...known: readonly KnownToken[]) => provider(...known).ask(TOKEN);
  t.same(refusal(issued({ revokedAt: '2026-05-01T00:00:00.000Z' })), { refused: 'the token tok_0000000000000001 is revoked' });
  t.same(refusal(issued({ expiresAt: '2026-06-01T00:00:00.000Z' })), {
    refused: 'the token tok_0000000000000001 has expired',
    expired: true,
  });
  t.same(refusal(issued({}, ['default'])), {
    refused: 'the token tok_0000000000000001 belongs to the project "acme", which is not in the configuration',
  });
  t.match(refusal(configuredToken({ name: 'old', project: 'acme', token: TOKEN, expires: '2026-06-01' })), {
    refused: /^the token cfg_[0-9a-f]{12} has expired$/,
  });
  t.match(refusal(configuredToken({ name: 'old', project: 'acme', token: TOKEN, expires: '2026-06-02' })), {
    principal: { token: 'old' },
  });
});

t.test('S-05 looks up nothing but 64 hexadecimal digits', async (t) => {
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

t.test('S-31 compares the whole digests after the look-up, in constant time', async (t) => {
  const nearly = digestOf(TOKEN).replace(/.$/, (last) => (last === '0' ? '1' : '0'));
  const unchecked = new BearerProvider(
    {
      find: () => ({ ...issued(), sha256: nearly }),
      recordUse: () => t.fail('accepted a token'),
      now: () => clock.now(),
    },
    ephemeral(),
  );
  t.same(unchecked.authenticate({ bearer: TOKEN, headers: {} }), { refused: 'an unknown token' }, 'whatever the look-up finds');
  t.equal(unchecked.authenticate({ bearer: PLAIN, headers: {} }), undefined);
  t.equal(digestsEqual(nearly, nearly), true);
  t.equal(digestsEqual(nearly, nearly.slice(1)), false);
});
