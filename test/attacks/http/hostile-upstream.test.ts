/**
 * Model servers, servers of images and MCP servers that send too much, on a whole server with a
 * heap of 256 MiB.
 */
import t, { type Test } from 'tap';
import { ASSISTANT, TRANSPORTS } from '../../support/test-server.js';
import { HOSTILE_MCP, hostileEntries, imagesAt, startHostileUpstream } from '../support/hostile-upstream.js';
import { LOOP_DELAY, LOOP_DELAY_FILES, longestDelay } from '../support/loop-delay.js';
import { ServerProcess } from '../support/server-process.js';

/** MiB by which resident memory may grow: what callers may hold, and garbage. */
const GROWTH = 320;
/** Milliseconds for which the event loop may be held. */
const HOLD_LIMIT = 2_000;

const upstream = await startHostileUpstream();
t.teardown(() => upstream.close());
const { models, agents } = hostileEntries('default');
const server = await ServerProcess.start(t, {
  yaml: `${TRANSPORTS}
tools: { hostile: { use: mcp, command: node, args: [./mcp.mjs] } }
${ASSISTANT.trim().replace('agents:', `${models.trimEnd()}\nagents:`)}
  caller: { model: fast, tools: [hostile] }
${agents}${LOOP_DELAY}`,
  files: { ...LOOP_DELAY_FILES, 'mcp.mjs': HOSTILE_MCP },
  env: { HOSTILE_URL: upstream.url },
  heap: 256,
});
const start = server.memory();

async function chat(model: string, message: object = { role: 'user', content: 'Hi' }, stream = false) {
  return server.request('/v1/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [message], stream }),
  });
}

async function assertUnharmed(t: Test) {
  t.equal((await chat('assistant')).status, 200);
  const held = Math.round(await longestDelay(server));
  const growth = Math.round(server.peakMemory() - start);
  t.comment(`held ${held} ms, +${growth} MiB at most`);
  t.ok(held < HOLD_LIMIT, `held ${held} ms`);
  t.ok(growth < GROWTH, `+${growth} MiB`);
}

t.test('S-68 images by address count in the memory of their caller', async (t) => {
  const replies = await Promise.all(['a', 'b'].map((prefix) => chat('seeing', imagesAt(upstream.url, 10, prefix))));
  for (const { status, text } of replies) {
    t.equal(status, 503);
    t.match(text, /limits\.memory/);
  }
  t.ok((upstream.asked.image ?? 0) < 20, 'the rest is not fetched');
  t.equal((await chat('seeing', imagesAt(upstream.url, 21, 'c'))).status, 400);
  await assertUnharmed(t);
});

t.test('S-75 answers of a model server without end are refused', async (t) => {
  for (const kind of ['event', 'error', 'compressed', 'html']) {
    const { status, text } = await chat(kind);
    t.ok(status === 400 || status === 502 || status === 503, `${kind}: ${status}`);
    t.ok(text.length < 4_096);
  }
  await assertUnharmed(t);
});

t.test('S-75 a list, a result and reports of an MCP server without end are cut', async (t) => {
  for (const name of ['large', 'reports']) {
    server.models.enqueue({ toolCalls: [{ name: `hostile__${name}`, arguments: {} }] }, { text: 'Done' });
    const { status, text } = await chat('caller', { role: 'user', content: 'Go' }, true);
    t.equal(status, 200);
    t.match(text, 'Done');
    t.ok(text.length < 1_000_000, `${name}: ${text.length} characters`);
  }
  const asked = JSON.stringify(server.models.requests.map(({ body }) => body));
  t.match(asked, /larger than 16 MiB/);
  t.match(asked, /hostile__tool_997"/, '1,000 tools are offered');
  t.notMatch(asked, /hostile__tool_998"/);
  await assertUnharmed(t);
});
