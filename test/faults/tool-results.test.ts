import t, { type Test } from 'tap';
import { ASSISTANT, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const yaml = `${TRANSPORTS}  responses: {}
${ASSISTANT.replace('model: fast', 'model: fast, tools: [own]')}tools: { own: { use: ./own.mjs } }
`;

/** An agent with the tools of a plugin. @param tools JavaScript. */
const startWithTools = (t: Test, tools: string) =>
  TestServer.start(t, yaml, {
    files: {
      'own.mjs': `
        import { definePlugin, ToolSources } from '@plugboard/kernel';
        const tools = ${tools};
        export default definePlugin({
          name: 'own', apiVersion: 1, summary: 'Tools of a test', configSchema: { type: 'object', properties: {} },
          register: (ctx) => ctx.contribute(ToolSources, { single: false, tools: async () => tools }),
        });`,
    },
  });

t.test('a tool with a draft-07 schema is offered, and its arguments are validated', async (t) => {
  const server = await startWithTools(
    t,
    `[{
      name: 'go', description: '', effect: 'read', run: async () => 'arrived',
      inputSchema: {
        $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', additionalProperties: false,
        properties: { at: { type: 'array', items: [{ type: 'number' }, { type: 'number' }], additionalItems: false } },
      },
    }]`,
  );
  for (const [at, result] of [
    [[1, 2], 'arrived'],
    [[1, 'x'], /"at\[1\]" must be a number/],
    [[1, 2, 3], /must NOT have more than 2 items/],
  ] as const) {
    server.models.enqueue({ toolCalls: [{ name: 'own__go', arguments: { at } }] }, { text: 'Done' });
    await server.chat(saying('Go'));
    t.match(server.asked.messages.at(-1), { role: 'tool', content: result });
  }
});

t.test('results and errors of a tool are valid Unicode and within the result limit', async (t) => {
  const server = await startWithTools(
    t,
    `[
      { name: 'half', description: '', effect: 'read', inputSchema: { type: 'object' }, run: async () => 'cut \\ud83d' },
      { name: 'fail', description: '', effect: 'read', inputSchema: { type: 'object' }, run: async () => { throw new Error('x'.repeat(1e6)); } },
    ]`,
  );
  server.models.enqueue(
    { toolCalls: ['half', 'fail'].map((name) => ({ name: `own__${name}`, arguments: {} })) },
    { text: 'Done' },
  );
  const reply = await server.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'Hi' });
  t.match(reply.body, { output: [{ type: 'mcp_call', output: 'cut \ufffd' }, {}, {}] });
  const [half, fail] = server.asked.messages.slice(-2);
  t.match(half, { content: 'cut \ufffd' });
  t.match(fail?.content, /^The tool failed: x+\n… \[truncated: 1000017 bytes in total\]$/);
  t.ok(String(fail?.content).length <= 64 * 1024);
});

t.test('S-60 images of a tool result beyond 5 MiB become notes', async (t) => {
  const server = await startWithTools(
    t,
    `[{
      name: 'shoot', description: '', effect: 'read', inputSchema: { type: 'object' },
      run: async () => ({ content: [
        ...Array(3).fill({ type: 'image', mimeType: 'image/png', data: 'A'.repeat(2 * 1024 * 1024) }),
        { type: 'text', text: 'Three pictures' },
      ] }),
    }]`,
  );
  server.models.enqueue({ toolCalls: [{ name: 'own__shoot', arguments: {} }] }, { text: 'Seen' });
  const reply = await server.chat(saying('Look', { session_id: 's' }));
  t.equal(reply.status, 200, reply.text);
  const sent = JSON.stringify(server.asked.messages);
  t.equal(sent.match(/data:image\/png/g)?.length, 2);
  t.match(sent, /image\/png, 1572864 bytes: left out.*Three pictures/);
});
