/** `item_reference`: a request names items of stored responses instead of sending them again. */
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { created, respond } from '../support/respond.js';
import { TestServer } from '../support/test-server.js';

interface Item {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

const CONFIG = liveConfig('{}', '').concat(`
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock], clientTools: passthrough }
`);

const read = { type: 'function', name: 'read', parameters: { type: 'object', properties: {} } };
const patch = { type: 'custom', name: 'apply_patch', format: { type: 'text' } };

t.test('items of every kind can be referenced, and are read as if they were sent', async (t) => {
  const app = await TestServer.start(t, CONFIG);
  app.models.enqueue({ text: 'The cat is Tom.' });
  const compacted = await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input: 'My cat is Tom.' });
  const [summary] = (compacted.body as { output: readonly Item[] }).output;
  app.models.enqueue(
    { toolCalls: [{ name: 'clock', arguments: {} }] },
    {
      reasoning: 'Let me see.',
      text: 'One moment.',
      toolCalls: [
        { name: 'read', arguments: {} },
        { name: 'apply_patch', arguments: { input: 'x' } },
      ],
    },
  );
  const said = [
    { ...summary, id: undefined },
    { role: 'user', content: 'Go' },
    { role: 'assistant', content: 'Going.' },
    { type: 'function_call', call_id: 'a', name: 'read', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'A' },
    { type: 'custom_tool_call', call_id: 'b', name: 'apply_patch', input: 'y' },
    { type: 'custom_tool_call_output', call_id: 'b', output: 'B' },
    { type: 'mcp_call', server_label: 'clock', name: 'clock', arguments: '{}', output: 'noon' },
    { type: 'reasoning', summary: [] },
    { type: 'mcp_approval_response', approval_request_id: 'mcpr_0', approve: false },
    { role: 'user', content: 'And now?' },
  ];
  const input = said.filter(({ type }) => type !== 'mcp_approval_response');
  const first = await created(app, { input, tools: [read, patch], reasoning: { summary: 'auto' } });
  const { body } = await app.get(`/v1/responses/${first.id}/input_items?limit=100&order=asc`);
  const items = [...(body as { data: readonly Item[] }).data, ...(first.output as unknown as readonly Item[])];
  t.strictSame(
    new Set(items.map(({ id }) => id.split('_')[0])),
    new Set(['cmp', 'msg', 'fc', 'fco', 'ctc', 'ctco', 'mcp', 'rs']),
    'no kind is missing',
  );
  const results = items
    .slice(input.length)
    .flatMap(({ type, call_id }) =>
      /^(function|custom_tool)_call$/.test(type) ? [{ type: `${type}_output`, call_id, output: 'C' }] : [],
    );
  t.equal(results.length, 2);
  const asked = async (sent: readonly object[]) => {
    const all = [...sent, { type: 'item_reference', id: 'mcpr_0' }, ...results, { role: 'user', content: 'Done?' }];
    const { status, text } = await respond(app, { store: false, input: all, tools: [read, patch] });
    t.equal(status, 200, text);
    return app.asked.messages;
  };
  const whole = await asked(items);
  t.strictSame(await asked(items.map(({ id }) => ({ type: 'item_reference', id }))), whole);
  t.match(JSON.stringify(whole), /The cat is Tom/);

  for (const id of ['', 'x', 'ctc_', `ctc_${'0'.repeat(24)}_0`, `${items[0]?.id}0`, `cmp_${'0'.repeat(24)}`]) {
    const { status } = await respond(app, {
      store: false,
      input: [
        { type: 'item_reference', id },
        { role: 'user', content: 'x' },
      ],
    });
    t.equal(status, 400, id);
  }
});
