/** Calls that run at the same time: what each surface shows of one, while another one runs. */
import t from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import { TestServer, TRANSPORTS } from '../support/test-server.js';

/** Two tools: one that ends when a test says so, and one that ends at once. */
const RACE = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'race', apiVersion: 1, summary: 'Two tools', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: {} };
      const tool = (name, run) => ({ name, effect: 'read', description: name, inputSchema, run });
      const tools = [tool('slow', () => globalThis.raceIsOver.then(() => 'slow result')), tool('quick', () => 'quick result')];
      ctx.contribute(ToolSources, { tools: () => tools });
    },
  });
`;

const server = await TestServer.start(
  t,
  `${TRANSPORTS}  responses: {}
  websocket: {}
  messages: {}
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" } }
tools: { race: { use: ./race.mjs } }
agents: { racer: { model: fast, tools: [race] } }
`,
  { files: { 'race.mjs': RACE } },
);

/** Scripts a step with both calls. @returns what lets the slow one end. */
function start(): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  Object.assign(globalThis, { raceIsOver: promise });
  server.models.enqueue(
    {
      toolCalls: [
        { name: 'race__slow', arguments: {} },
        { name: 'race__quick', arguments: {} },
      ],
    },
    { text: 'Done.' },
  );
  return resolve;
}

/** The results in the order in which a text has them. */
function orderIn(text: string): readonly string[] {
  return [...text.matchAll(/(slow|quick) result/g)]
    .map(([, name = '']) => name)
    .filter((name, at, all) => all.indexOf(name) === at);
}

t.test('R-047 a call that has ended is shown while another one runs', async (t) => {
  const ask = { model: 'racer', input: 'Go', messages: [{ role: 'user', content: 'Go' }], max_tokens: 99 };
  for (const [path, end] of [
    ['/v1/responses', 'response.completed'],
    ['/v1/messages', 'message_stop'],
  ] as const) {
    const finish = start();
    const stream = await server.open(ask, { 'anthropic-beta': 'mcp-client-2025-04-04' }, path);
    await stream.until('quick result'); // ends only if the result comes before `finish`
    t.notMatch(stream.received, 'slow result', path);
    finish();
    await stream.until(end);
    t.strictSame(orderIn(stream.received.split(end)[0] ?? ''), ['quick', 'slow'], path);
    t.match(server.asked.messages.slice(-2), [{ content: 'slow result' }, { content: 'quick result' }], path);
  }
});

t.test('R-047 a socket shows it too, and the items keep the order of the calls', async (t) => {
  const finish = start();
  const socket = await LiveSocket.open(t, server);
  socket.send({ type: 'response.create', model: 'racer', input: 'Go' });
  const [done] = (await socket.until('response.output_item.done')).slice(-1);
  t.match(done, { output_index: 1, item: { type: 'mcp_call', name: 'quick', output: 'quick result' } });
  finish();
  const end = (await socket.until('response.completed')).at(-1);
  t.match(end?.response?.output, [{ output: 'slow result' }, { output: 'quick result' }, { type: 'message' }]);
});
