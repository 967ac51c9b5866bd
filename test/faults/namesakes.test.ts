import t from 'tap';
import { ASSISTANT, answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';
import { bearer } from '../support/tokens.js';

/** Two callers of one name, and one whose provider gives no id. */
const NAMESAKES = `
  import { AuthProviders, definePlugin } from '@plugboard/kernel';
  const one = { project: 'default', token: 'ada', scopes: ['chat'] };
  const principals = { first: { ...one, tokenId: 'id-1' }, second: { ...one, tokenId: 'id-2' }, nameless: one };
  export default definePlugin({
    name: 'namesakes', apiVersion: 1, summary: 'Knows callers', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(AuthProviders, { authenticate: ({ bearer }) => ({ principal: principals[bearer] }) }),
  });
`;

t.test('S-44 two callers with the same name do not join turns or share idempotency keys', async (t) => {
  const yaml = `${TRANSPORTS}${ASSISTANT}auth: { namesakes: { use: ./namesakes.mjs } }\n`;
  const server = await TestServer.start(t, yaml, { files: { 'namesakes.mjs': NAMESAKES } });
  const gate = Promise.withResolvers<void>();
  server.models.respond(() => ({ text: [gate.promise, 'Yes'] }));
  const body = saying('Hi', { session_id: 's' });
  const replies = ['first', 'first', 'second', 'nameless', 'nameless'].map((token) => server.chat(body, bearer(token)));
  await server.models.received(1);
  gate.resolve();
  for (const reply of await Promise.all(replies)) t.equal(answerOf(reply), 'Yes');
  t.equal(server.models.requests.length, 4, 'only the same credential joins');

  const key = { 'idempotency-key': 'k' };
  for (const [token, status, replayed] of [
    ['first', 200, null],
    ['first', 200, 'true'],
    ['second', 422, null],
  ] as const) {
    const reply = await server.chat(saying('Once'), { ...key, ...bearer(token) });
    t.equal(reply.status, status, reply.text);
    t.equal(reply.headers.get('idempotent-replayed'), replayed);
  }
});
