import { fileURLToPath } from 'node:url';
import t from 'tap';
import { TestServer } from '../../support/test-server.js';
import { large, uncounted } from '../support/counted-store.js';
import { Flood } from '../support/flood.js';
import { FIRST, HEAVY_REQUESTS, HEAVY_YAML, type Sent, sentBy, storeHeavy } from '../support/heavy-requests.js';

const MIB = 1024 * 1024;
const STORE = fileURLToPath(new URL('../support/counted-store.ts', import.meta.url));

t.setTimeout(300_000);

t.test('S-71 what the store reads for a request is reserved before, on every route and socket', async (t) => {
  const flood = await Flood.create(t);
  const yaml = HEAVY_YAML.replace('use: sqlite', `use: ${JSON.stringify(STORE)}`);
  const app = await TestServer.start(t, yaml, { env: { PORT: '0', ATTACKED_URL: flood.modelUrl } });
  const request = async (path: string, init?: RequestInit) => {
    const response = await fetch(app.url + path, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const stored = await storeHeavy({ models: app.models, request });
  app.models.respond({ text: 'x'.repeat(MIB) });

  const post = (path: string, body: object, headers = {}): Sent => ({
    method: 'POST',
    path,
    headers: { authorization: `Bearer ${FIRST}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const chat = { model: 'asking', messages: [{ role: 'user', content: 'Hi' }] };
  const sent: [string, Sent][] = [
    ...Object.keys(HEAVY_REQUESTS).map((name): [string, Sent] => [name, sentBy(FIRST, name, stored)]),
    // What the table cannot repeat: a recorded answer, and decisions about calls that wait.
    ['a repeated request', post('/v1/chat/completions', chat, { 'idempotency-key': 'one' })],
    ['a decision', post(`/v1/approvals/${stored.approval}`, { approve: true })],
    ['a cancel of calls that wait', post(`/v1/conversations/${stored.conversation}/cancel`, {})],
    ['a message about them', post('/v1/responses', { model: 'asking', conversation: stored.conversation, input: 'Hi' })],
  ];
  for (const [name, one] of sent) {
    uncounted.length = 0;
    let answers = 0;
    // Longer each time, on a busy machine.
    for (let length = 100; answers < 2 && length < 30_000; length *= 2) {
      flood.start(app, [one]);
      await new Promise((resolve) => setTimeout(resolve, length));
      for (const count of Object.values(await flood.stop())) answers += count;
    }
    t.ok(answers >= 2, `${name} is answered`);
    t.same([...new Set(uncounted)], [], name);
  }
  t.same([...large].sort(), ['approvals.get', 'documents.get', 'idempotency.claim', 'list', 'load', 'turns']);
});
