import t from 'tap';
import { AUDIENCE, newKey, signed, TestIssuer } from '../../../plugins/auth-jwt/test/support/issuer.js';
import { ASSISTANT, answerOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';

const key = await newKey('one');
const issuer = await TestIssuer.start(t, key);
const JWT = `auth: { jwt: { issuer: "${issuer.url}", audience: "${AUDIENCE}", project: { claim: org, map: { one: default } } } }\n`;
const server = await TestServer.start(t, TRANSPORTS + ASSISTANT + JWT);

/** Sends the same request with one idempotency key as two callers. @returns their answers. */
async function repeated(name: string, claims: readonly object[]): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const [at, own] of claims.entries()) {
    const token = await signed(key, { iss: issuer.url, aud: AUDIENCE, exp: Date.now() / 1000 + 600, org: 'one', ...own });
    server.models.enqueue({ text: `For caller ${at}` });
    const reply = await server.chat(saying('What is my secret?'), { ...bearer(token), 'Idempotency-Key': name });
    t.equal(reply.status, 200, `${name}, caller ${at}`);
    answers.push(answerOf(reply));
  }
  return answers;
}

t.test('S-58 a JWT without a subject replays no answer of another one', async (t) => {
  t.same(await repeated('without', [{ jti: 'a' }, { jti: 'b' }]), ['For caller 0', 'For caller 1']);
  t.same(await repeated('empty', [{ sub: '' }, { sub: '' }]), ['For caller 0', 'For caller 1']);
  t.same(await repeated('with', [{ sub: 'ada' }, { sub: 'ada' }]), ['For caller 0', 'For caller 0'], 'one subject still does');
});
