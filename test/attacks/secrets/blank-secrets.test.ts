import t from 'tap';
import { run } from '../../../plugins/cli/test/plugboard.js';

const FILE = (auth: string) => `
transports: { http: { port: 0 }, models: {} }
auth: ${auth}
models: { demo: {} }
agents: { assistant: { model: demo } }
`;
const TOKENS = (fields: string) => FILE(`{ bearer: { tokens: [ { name: ops, project: default, ${fields} } ] } }`);
const TOKEN = TOKENS(`token: "\${OPS_TOKEN}"`);
const JWT = FILE(
  `{ jwt: { issuer: "\${ISSUER}", audience: "\${AUDIENCE}", jwksUri: "http://127.0.0.1:1/jwks", project: { claim: org, map: { one: default } } } }`,
);
const ISSUER = 'https://issuer-canary.example.com';
const AUDIENCE = 'audience-canary-of-this-test';
const OPS_TOKEN = 'token-canary-of-this-test';

type Case = readonly [what: string, yaml: string, env: Readonly<Record<string, string>>, says: RegExp];

/** What may be wrong with a secret, and the place that the message must name. */
const CASES: readonly Case[] = [
  [
    'a token whose variable is missing',
    TOKEN,
    {},
    /^plugboard\.yaml:3:\d+ auth\.bearer\.tokens\[0\]\.token: .*OPS_TOKEN is not set/m,
  ],
  [
    'a token from an empty variable',
    TOKEN,
    { OPS_TOKEN: '' },
    /^plugboard\.yaml:3:\d+ auth\.bearer\.tokens\[0\]\.token: .*blank/m,
  ],
  [
    'a token from a variable of blanks',
    TOKEN,
    { OPS_TOKEN: ' \t ' },
    /^plugboard\.yaml:3:\d+ auth\.bearer\.tokens\[0\]\.token: .*blank/m,
  ],
  ['a token that is too short to be one', TOKEN, { OPS_TOKEN: 'canary-short' }, /auth\.bearer\.tokens\[0\]\.token: /],
  ['a mistyped issued token', TOKEN, { OPS_TOKEN: `svcp_canary${'0'.repeat(32)}` }, /auth\.bearer\.tokens\[0\]\.token: /],
  ['a token with a blank in it', TOKEN, { OPS_TOKEN: 'canary canary canary' }, /auth\.bearer\.tokens\[0\]\.token: /],
  ['a token that is written down empty', TOKENS('token: ""'), {}, /auth\.bearer\.tokens\[0\]\.token: .*blank/],
  ['a token that is null', TOKENS('token: null'), {}, /auth\.bearer\.tokens\[0\]/],
  [
    'a token without a value or a digest',
    FILE('{ bearer: { tokens: [ { name: ops, project: default } ] } }'),
    {},
    /auth\.bearer\.tokens\[0\]/,
  ],
  ['an empty digest', TOKENS(`sha256: "\${DIGEST}"`), { DIGEST: '' }, /auth\.bearer\.tokens\[0\]\.sha256: /],
  ['an empty auth section', FILE(''), { OPS_TOKEN }, /^plugboard\.yaml:3:\d+ auth: /m],
  ['an auth section that is an empty map', FILE('{}'), { OPS_TOKEN }, /^plugboard\.yaml:3:\d+ auth: /m],
  ['an auth section that is an empty text', FILE('""'), { OPS_TOKEN }, /^plugboard\.yaml:3:\d+ auth: /m],
  [
    'a provider that need not be there',
    TOKEN.replace('{ tokens', '{ optional: true, tokens'),
    {},
    /^plugboard\.yaml:3:\d+ auth\.bearer/m,
  ],
  ['an empty issuer', JWT, { ISSUER: '', AUDIENCE }, /auth\.jwt\.issuer: /],
  ['an empty audience', JWT, { ISSUER, AUDIENCE: '' }, /auth\.jwt\.audience/],
  ['an audience whose variable is missing', JWT, { ISSUER }, /auth\.jwt\.audience: .*AUDIENCE is not set/],
];

for (const [what, yaml, env, says] of CASES) {
  t.test(`S-13 ${what} stops the start with exit code 78 and an error that names the place and no value`, async (t) => {
    const { code, stdout, stderr } = await run(t, ['start'], { cwd: t.testdir({ 'plugboard.yaml': yaml }), env });
    t.equal(code, 78);
    t.equal(stdout, '');
    t.match(stderr, says);
    t.notMatch(stderr, /canary/);
  });
}

t.test('S-13 `plugboard check` reports the same errors without starting anything', async (t) => {
  const cwd = t.testdir({ 'plugboard.yaml': TOKEN });
  t.match(await run(t, ['check'], { cwd, env: { OPS_TOKEN: ' ' } }), { code: 78, stderr: /tokens\[0\]\.token: .*blank/ });
  const right = await run(t, ['check'], { cwd, env: { OPS_TOKEN } });
  t.match(right, { code: 0, stdout: /^ {2}access +with a credential \(bearer\)$/m });
  t.notMatch(right.stdout + right.stderr, /canary/);
});
