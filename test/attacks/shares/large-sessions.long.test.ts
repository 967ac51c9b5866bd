/**
 * Conversations that are larger than the memory of the server (S-37). Each server is a process of
 * its own.
 */
import t from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

const MIB = 1024 * 1024;
/** The heap limit, the size of a conversation, and how many there are: together twice the heap. */
const [HEAP, SIZE, SESSIONS] = [256, 8, 60];

t.test('S-37 more conversations than fit into memory are served, and each one is still there', async (t) => {
  const yaml = `${TRANSPORTS}sessions: { use: sqlite, path: ./sessions.db }\n${ASSISTANT.replace('model: big-1', 'model: big-1, contextWindow: 100000000')}`;
  const server = await ServerProcess.start(t, { yaml, heap: HEAP });
  server.models.respond(() => ({ text: 'ok' }));
  const chat = (session: number, content: string) =>
    server.request('/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', session_id: `s${session}`, messages: [{ role: 'user', content }] }),
    });
  const statuses = new Set<number>();
  for (let session = 0; session < SESSIONS; session++) {
    statuses.add((await chat(session, 'x'.repeat(SIZE * MIB))).status);
  }
  t.same([...statuses], [200]);
  const peak = server.peakMemory();
  t.comment(`${SESSIONS} conversations of ${SIZE} MiB: peak ${Math.round(peak)} MiB resident, heap limit ${HEAP} MiB`);
  t.ok(peak < 3 * HEAP);

  server.kill('SIGUSR2');
  const { limits } = await server.logs('status');
  const cache = (limits as { setting: string; used: number; cached: number; limit: number }[]).find(
    ({ setting }) => setting === 'limits.memory',
  );
  t.ok(cache && cache.used === 0 && cache.cached > 0 && cache.cached <= cache.limit, JSON.stringify(cache));

  t.equal((await chat(0, 'and now?')).status, 200);
  const [, first] = server.models.requests.at(-1)?.body.messages ?? [];
  t.equal(String(first?.content).length, SIZE * MIB, 'the first one is loaded again');
});
