/**
 * A project that fills the session store, beside one that uses it little (S-42). Each server is a
 * process of its own.
 */
import t, { type Test } from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { ServerProcess } from '../support/server-process.js';

const [GREEDY, INNOCENT] = ['token-of-greedy-caller', 'token-of-other-project'];

const FILE = `${TRANSPORTS}${ASSISTANT}  innocents: { model: fast, project: quiet }
  loud: { model: fast, project: loud }
projects: { loud: { defaultAgent: loud }, quiet: { defaultAgent: innocents } }
auth: { bearer: { tokens: [
  { name: greedy, project: loud, token: ${GREEDY} }, { name: innocent, project: quiet, token: ${INNOCENT} } ] } }
`;

async function startWith(t: Test, store: string) {
  const server = await ServerProcess.start(t, { yaml: `${FILE}sessions: ${store}\n` });
  const chat = (token: string, content: string, fields: object, headers: Record<string, string> = {}) =>
    server.request('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...bearer(token), ...headers },
      body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content }], ...fields }),
    });
  return { server, chat };
}

for (const [store, options] of [
  ['memory', 'maxSessions: 20, maxBytes: 200kb'],
  ['sqlite', 'path: ./sessions.db, maxSessionsPerProject: 20, maxBytesPerProject: 100kb'],
] as const) {
  t.test(`S-42 a project that fills the ${store} store pushes out nothing of another project`, async (t) => {
    const { server, chat } = await startWith(t, `{ use: ${store}, ${options} }`);
    t.equal((await chat(INNOCENT, 'My name is Ada.', { session_id: 'a' })).status, 200);
    const once = () => chat(INNOCENT, 'Run this once.', {}, { 'idempotency-key': 'once' });
    t.equal((await once()).headers.get('idempotent-replayed'), null);

    const statuses = new Set<number>();
    for (let n = 0; n < 60; n++) {
      statuses.add((await chat(GREEDY, 'x'.repeat(5_000), { session_id: `s${n}` })).status);
      statuses.add((await chat(GREEDY, 'y'.repeat(5_000), {}, { 'idempotency-key': `k${n}` })).status);
    }
    t.same([...statuses].sort(), store === 'memory' ? [200] : [200, 507]);

    const asked = server.models.requests.length;
    const replayed = await once();
    t.equal(replayed.headers.get('idempotent-replayed'), 'true');
    t.equal(server.models.requests.length, asked, 'the retry does not run again');
    t.equal((await chat(INNOCENT, 'Who am I?', { session_id: 'a' })).status, 200);
    t.match(JSON.stringify(server.models.requests.at(-1)?.body), 'My name is Ada.');
    const evicted = server.log.filter(({ msg }) => String(msg).startsWith('evicted a session'));
    t.same([...new Set(evicted.map(({ project }) => project))], store === 'memory' ? ['loud'] : []);
  });
}
