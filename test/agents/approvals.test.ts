/** A call inside of an agent that a tool asks, which a person decides about. */
import t, { type Test } from 'tap';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const SHELL = `
  import { definePlugin, ToolSources } from '@plugboard/kernel';
  export default definePlugin({
    name: 'shell', apiVersion: 1, summary: 'Appends lines', configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const inputSchema = { type: 'object', properties: { line: { type: 'string' } }, required: ['line'] };
      const run = ({ line }) => (ctx.log.info({ line }, 'ran'), 'appended ' + line);
      ctx.contribute(ToolSources, { tools: () => [{ name: 'append', description: 'Appends.', inputSchema, effect: 'write', run }] });
    },
  });
`;

const config = (helper = '') => `${TRANSPORTS}  responses: {}
  conversations: {}
  approvals: {}
models:
  top: { use: openai, baseUrl: "\${MODEL_URL}", model: top, apiKey: "\${MODEL_KEY}" }
  low: { use: openai, baseUrl: "\${MODEL_URL}", model: low, apiKey: "\${MODEL_KEY}" }
tools:
  shell: { use: ./shell.mjs }
  helper: { use: agent, agent: clerk, description: Keeps the diary. }
agents:
  assistant: { model: top, tools: [helper] }
  clerk: { model: low, tools: [shell], approve: [shell]${helper} }
`;

interface Item {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A server whose assistant asks the clerk, which writes into the diary if a person approves it. */
async function start(t: Test, helper?: string) {
  const app = await TestServer.start(t, config(helper), { files: { 'shell.mjs': SHELL } });
  app.models.respond(({ body: { model, messages } }) => {
    const result = messages.findLast(({ role }) => role === 'tool');
    if (result) return { text: `${model} read: ${result.content}` };
    const call =
      model === 'top'
        ? { name: 'helper', arguments: { input: 'Note it' } }
        : { name: 'shell__append', arguments: { line: 'rain' } };
    return { toolCalls: [call] };
  });
  const listed = async (path: string) => ((await app.get(path)).body as { readonly data: readonly Item[] }).data;
  return {
    app,
    ran: () => app.started.logs.filter(({ msg }) => msg === 'ran').length,
    say: async (content: string) => answerOf(await app.chat(saying(content, { session_id: 'diary' }))),
    approvals: () => listed('/v1/approvals'),
    items: async () => {
      const [session] = await listed('/v1/conversations');
      return listed(`/v1/conversations/${session?.id}/items?order=asc`);
    },
  };
}

t.test('AG-9 a request for approval names the way to the call, and the agent goes on after it', async (t) => {
  const { ran, say, approvals, items } = await start(t);
  const asked = await say('Note that it rains');
  t.match(asked, /helper › shell\/append/);
  t.match(asked, /rain/);
  const [approval] = await approvals();
  t.match(approval, { agent: 'assistant', tool: 'helper › shell/append', arguments: '{"line":"rain"}' });
  t.match((await items()).at(-1), {
    type: 'mcp_approval_request',
    id: approval?.id,
    server_label: 'helper › shell',
    name: 'append',
    arguments: '{"line":"rain"}',
  });
  t.equal(ran(), 0);
  const answer = await say(`approve ${/approve ([A-Z2-9]{6})/.exec(asked)?.[1]}`);
  t.equal(answer, 'top read: low read: appended rain');
  t.equal(ran(), 1);
  t.match((await items()).slice(-3), [
    { type: 'mcp_approval_response', approval_request_id: approval?.id, approve: true },
    { type: 'mcp_call', server_label: 'helper', approval_request_id: approval?.id, output: 'low read: appended rain' },
    { type: 'message' },
  ]);
  t.strictSame(await approvals(), []);
});

t.test('AG-9 a call that a person denies by POST /v1/approvals does not run, and the agent answers', async (t) => {
  const { app, ran, say, approvals } = await start(t);
  await say('Note that it rains');
  const [{ id } = { id: '' }] = await approvals();
  const decided = await app.request('POST', `/v1/approvals/${id}`, {}, { approve: false, reason: 'it is dry' });
  t.match(decided.body, { tool: 'helper › shell/append', approve: false });
  t.match(await say('Go on'), /it is dry/);
  t.equal(ran(), 0);
});

t.test('AG-9 what the agent hides, the request hides too', async (t) => {
  const { say, approvals } = await start(t, ', toolVisibility: names');
  const asked = await say('Note that it rains');
  t.match(asked, /helper › shell\/append/);
  t.notMatch(asked + JSON.stringify(await approvals()), /"rain|line/);
});
