import { fileURLToPath } from 'node:url';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const FIXTURE = fileURLToPath(new URL('../../plugins/tool-mcp/test/fixtures/server.mjs', import.meta.url));

const YAML = `
${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
tools:
  x: { use: mcp, command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(FIXTURE)}] }
agents:
  assistant: { model: fast, tools: [x] }
`;

t.test('a tool keeps its name at the model when the list of tools changes', async (t) => {
  const server = await TestServer.start(t, YAML);
  const call = async (name: string, args: object) => {
    server.models.enqueue({ toolCalls: [{ name, arguments: args as Record<string, unknown> }] }, { text: 'done' });
    const reply = await server.chat(saying('go'));
    t.equal(reply.status, 200, reply.text);
    return (server.asked.messages as { role: string; content: string }[]).find(({ role }) => role === 'tool')?.content;
  };
  const changed = (count: number) =>
    eventually(() => server.started.logs.filter(({ msg }) => msg === 'the MCP server has changed its tools').length === count);

  await call('x__change', { add: ['do_it'] });
  await changed(1);
  t.equal(await call('x__do_it', {}), 'do_it');
  // Both tools are x__do_it at the model.
  await call('x__change', { remove: ['do_it'], add: ['do.it'] });
  await changed(2);
  t.match(await call('x__do_it', {}), /^There is no tool "x__do_it"/, 'the name is not passed on');
  await call('x__change', { add: ['do_it'] });
  await changed(3);
  t.equal(await call('x__do_it', {}), 'do_it', 'the older owner gets it back, though it is listed last');
  t.match(
    server.started.logs.filter(({ level, msg }) => level === 'warn' && /at the model/.test(String(msg))).map(({ msg }) => msg),
    [/"x__do_it" at the model: x\/do_it and x\/do\.it; the newer one was skipped/],
    'logged once, though it happened twice',
  );
});
