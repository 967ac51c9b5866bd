/** A session whose work made the watchdog end the process does not end the next one. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { conversationId } from '@plugboard/kernel/contracts';
import t from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

const STUCK = `
  import { definePlugin, Interceptors } from '@plugboard/kernel';
  export default definePlugin({
    name: 'stuck', apiVersion: 1, summary: 'Never ends', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      ctx.contribute(Interceptors, (turn, next) => {
        if (turn.messages.at(-1).content === 'stand still') for (;;);
        return next(turn);
      });
    },
  });
`;
const YAML = `${TRANSPORTS}  conversations: {}
sessions: { use: sqlite, path: "\${DATA_DIR}/sessions.db" }
plugins: { stuck: { use: ./stuck.mjs } }
${ASSISTANT}`;

const folder = mkdtempSync(join(tmpdir(), 'plugboard-'));
t.teardown(() => rmSync(folder, { recursive: true }));
const start = () => ServerProcess.start(t, { yaml: YAML, files: { 'stuck.mjs': STUCK }, env: { DATA_DIR: folder }, heap: 256 });

function say(server: ServerProcess, key: string, content: string) {
  return server.request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', session_id: key, messages: [{ role: 'user', content }] }),
  });
}

t.test('S-19 a session that made the watchdog end the process is closed in the next one', async (t) => {
  const id = conversationId({ project: 'default', agent: 'assistant', key: 'stuck' });
  const first = await start();
  t.equal((await say(first, 'stuck', 'Hi')).status, 200);
  await t.rejects(say(first, 'stuck', 'stand still'));
  await first.closed();
  t.match(first.stderr, `the session ${id} stays closed while it is in ${folder}`);

  const second = await start();
  t.match(await second.logs('sessions are closed because work on them held up the server'), { conversations: [id] });
  const refused = await say(second, 'stuck', 'stand still');
  t.match(refused, { status: 502, text: /The session is closed: work on it held up the server/ });
  t.match((await second.request(`/v1/conversations/${id}/items`)).text, /The session is closed/);
  t.match(JSON.parse((await second.request(`/v1/conversations/${id}`)).text), { status: 'quarantined' });
  t.equal((await say(second, 'other', 'Hi')).status, 200);

  t.equal((await second.request(`/v1/conversations/${id}`, { method: 'DELETE' })).status, 200);
  t.strictSame(JSON.parse(readFileSync(join(folder, 'blocked-sessions.json'), 'utf8')), []);
  t.equal((await say(second, 'stuck', 'Hi')).status, 200);
});
