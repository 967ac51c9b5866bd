import { eventually, ModelServer, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { mcpServer } from './http-server.js';

const FILE = `
transports: { http: { port: 0 }, chat-completions: {} }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: scripted } }
tools: { docs: { use: mcp, url: "\${MCP_URL}" } }
agents: { assistant: { model: fast, tools: [docs] } }
`;

/** A whole server with one entry for an MCP server over HTTP. */
async function wholeServer(t: Test, mcpUrl: string, isKeyed = false) {
  const model = await ModelServer.start();
  t.teardown(() => model.close());
  const server = await startServer(isKeyed ? FILE.replace('use: mcp', 'use: mcp, keyed: true') : FILE, {
    env: { MODEL_URL: model.url, MCP_URL: mcpUrl },
  });
  t.teardown(() => server.stop());
  const ask = async () => {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer the-callers-token' },
      body: JSON.stringify({ model: 'assistant', messages: [{ role: 'user', content: 'Go.' }] }),
    });
    return response.text();
  };
  const tools = () => JSON.stringify(model.requests.at(-1)?.body.tools);
  return { model, ask, tools };
}

t.test('MCP-8 MCP-14 an agent calls the tools, whose order at the server changes nothing at the model', async (t) => {
  const mcp = await mcpServer(t, 'new');
  const { model, ask, tools } = await wholeServer(t, mcp.url);
  model.enqueue({ toolCalls: [{ name: 'docs__echo', arguments: { page: 7 } }] }, { text: 'Found it.' });
  t.match(await ask(), /Found it/);
  t.match(model.requests.at(-1)?.body.messages.at(-1)?.content, '{"page":7}');
  t.notMatch(JSON.stringify(mcp.received), /the-callers-token/);

  const before = tools();
  const lists = mcp.of('tools/list').length;
  mcp.list = [...mcp.list].reverse();
  mcp.pageSize = 1;
  await mcp.changed();
  await eventually(() => mcp.of('tools/list').length >= lists + 2);
  model.enqueue({ text: 'Again.' });
  t.match(await ask(), /Again/);
  t.equal(tools(), before);
});

t.test('MCP-9 a turn keeps the tools that it began with; the next one has the changed list', async (t) => {
  const mcp = await mcpServer(t, 'old');
  const { model, ask, tools } = await wholeServer(t, mcp.url);
  mcp.tools.write = (call) => {
    mcp.list = [mcp.tool('added')];
    const lists = mcp.of('tools/list').length;
    void mcp
      .changed()
      .then(() => eventually(() => mcp.of('tools/list').length > lists))
      .then(() => call.answer({ content: [{ type: 'text', text: 'changed' }] }));
  };
  model.enqueue({ toolCalls: [{ name: 'docs__write', arguments: {} }] }, { text: 'Done.' }, { text: 'Next.' });
  t.match(await ask(), /Done/);
  t.match(tools(), /docs__echo.*docs__write/);
  t.match(await ask(), /Next/);
  t.match(tools(), /docs__added/);
  t.notMatch(tools(), /docs__echo/);
});

t.test('MCP-6 MCP-18 a call whose stream breaks is repeated with its key, if its tool is keyed or only reads', async (t) => {
  const mcp = await mcpServer(t, 'new');
  /** The keys of the calls of a tool whose first answer breaks off, and what the model is told. */
  const broken = async (tool: 'echo' | 'write', isKeyed: boolean) => {
    const { model, ask } = await wholeServer(t, mcp.url, isKeyed);
    const before = mcp.of('tools/call').length;
    const answer = mcp.tools[tool];
    mcp.tools[tool] = (call) => {
      mcp.tools[tool] = (again) => again.answer({ content: [{ type: 'text', text: 'done' }] });
      call.stream();
      setImmediate(() => call.response.destroy());
    };
    model.enqueue({ toolCalls: [{ name: `docs__${tool}`, arguments: {} }] }, { text: 'Ok.' });
    await ask();
    if (answer) mcp.tools[tool] = answer;
    const calls = mcp.of('tools/call').slice(before);
    const keys = calls.map(({ params }) => (params._meta as Record<string, unknown>)['plugboard/idempotency-key']);
    return { keys, told: model.requests.at(-1)?.body.messages.at(-1)?.content };
  };
  for (const [tool, isKeyed] of [
    ['echo', false],
    ['write', true],
  ] as const) {
    const { keys, told } = await broken(tool, isKeyed);
    t.match(keys, [/^turn_\w+\/0$/, keys[0]]);
    t.equal(told, 'done');
  }
  const { keys, told } = await broken('write', false);
  t.equal(keys.length, 1);
  t.match(told, /whether the call took effect is unknown$/);
});
