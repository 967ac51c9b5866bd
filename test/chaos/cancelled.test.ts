import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';
import { running } from './stubborn-tool.js';

const TURNS = rounds({ short: 40, long: 300, soak: 1_000 });
const CLIENTS = 10;
t.setTimeout(30_000 + TURNS * 200);

const TOOL = new URL('./stubborn-tool.ts', import.meta.url);
const server = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  work: { use: ./work.mjs }
agents:
  assistant: { model: fast, tools: [work] }
sessions: { use: sqlite, path: ${JSON.stringify(join(t.testdir(), 'sessions.db'))} }
`,
  { files: { 'work.mjs': `export { default } from ${JSON.stringify(TOOL.href)};` } },
);

const never = new Promise<void>(() => {});
/**
 * Where a turn stands still. The connection of an answer that ends is not kept for later, so that
 * each that is open belongs to a turn.
 */
const headers = { connection: 'close' };
server.models.respond(({ body }) => {
  const text = String(body.messages.findLast(({ role }) => role === 'user')?.content);
  if (text.includes('before the first token')) return { before: never };
  if (text.includes('in the middle')) return { text: ['Half', never], headers };
  if (text.includes('in a tool')) return { toolCalls: [{ name: 'work', arguments: {} }], headers };
  return { text: 'Done', headers };
});
const PLACES = ['before the first token', 'in the middle', 'in a tool'];

/** Asks for a turn, and hangs up when it stands still there. */
async function cancel(place: string, session: string, stream: boolean): Promise<void> {
  const text = `Stop ${place}, ${session}`;
  const isOurs = ({ body }: { body: { messages: readonly { content?: unknown }[] } }) => body.messages.at(-1)?.content === text;
  const abort = new AbortController();
  const gone = fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(saying(text, { session_id: session, stream })),
    signal: abort.signal,
  })
    .then((response) => response.text())
    .catch(() => undefined);
  const asked = await eventually(() => server.models.requests.find(isOurs));
  if (place === 'in the middle' && stream) await eventually(() => asked.sent >= 2);
  if (place === 'in a tool') await asked.ended;
  abort.abort();
  await gone;
}

t.test(`R-024 after ${TURNS} cancelled turns no model call or tool is running, and each session can continue`, async (t) => {
  let next = 0;
  const before = performance.now();
  const client = async () => {
    while (next < TURNS) {
      const number = next++;
      await cancel(PLACES[number % PLACES.length] as string, `session ${number}`, number % 2 === 0);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  t.comment(`${Math.round(performance.now() - before)} ms`);

  await eventually(() => server.models.openConnections === 0);
  await eventually(() => running.size === 0);
  t.equal(server.models.requests.filter(({ state }) => state === 'open').length, 0);
  t.equal(server.models.requests.length, TURNS, 'no model was asked again after a tool that was stopped');
  for (const number of [0, 1, 2, TURNS - 1]) {
    const session = `session ${number}`;
    t.equal(answerOf(await server.chat(saying('Go on', { session_id: session }))), 'Done');
    t.equal(server.asked.messages.length, 1, 'nothing is left of what was cancelled');
  }
});
