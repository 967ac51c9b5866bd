import { type Message, ModelConnectors, type ModelEvent } from '@plugboard/kernel';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import { connect, open } from './connection.js';

type Chunk = Readonly<Record<string, unknown>>;

/** A stream of deltas that ends with this finish reason. */
function stream(finish_reason: string, ...deltas: readonly Chunk[]): { raw: readonly string[] } {
  const chunks = [...deltas.map((delta) => ({ choices: [{ delta }] })), { choices: [{ delta: {}, finish_reason }] }];
  return { raw: [chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')] };
}

/** The data that an answer attaches to its calls and to its message, without ids. */
async function attached(
  { connector }: Pick<ReturnType<typeof connect>, 'connector'>,
  messages: readonly Message[] = [{ role: 'user', content: 'Hi' }],
) {
  const events: ModelEvent[] = [];
  for await (const batch of connector.stream(modelRequest('Hi', { messages }), new AbortController().signal))
    events.push(...batch);
  const data = events.flatMap((event) => (event.type === 'tool-call' || event.type === 'end' ? [event.extra] : []));
  return data.map((extra) => (extra as { fields?: unknown } | undefined)?.fields);
}

const toolTurn: readonly Message[] = [
  { role: 'user', content: 'Hi' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'a', content: 'ok' },
];

t.test('a call keeps its thought signature and its id', async (t) => {
  const { server, ...connection } = await open(t);
  const extra_content = { google: { thought_signature: 'AY8=' } };
  const call = { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '{}' }, extra_content };
  server.enqueue(stream('stop', { tool_calls: [call, { ...call, id: 'b', extra_content: undefined }] }));
  t.strictSame(await attached(connection), [{ extra_content }, undefined, undefined]);

  server.enqueue(
    stream(
      'tool_calls',
      { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', provider_specific_fields: { thought_signature: 'x' } } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{}' }, thought_signature: 'y' }] },
      { extra_content: { google: { thought_signature: 'of the message' } } },
    ),
  );
  t.strictSame(await attached(connection), [
    { function: { provider_specific_fields: { thought_signature: 'x' } }, thought_signature: 'y' },
    { extra_content: { google: { thought_signature: 'of the message' } } },
  ]);
});

t.test('a message keeps its reasoning in turns with tool calls only', async (t) => {
  const { server, ...connection } = await open(t);
  const thoughts = [{ reasoning_content: 'I ' }, { reasoning_content: 'think' }];
  const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] };
  server.enqueue(stream('tool_calls', ...thoughts, call), stream('stop', ...thoughts, { content: 'a' }));
  t.strictSame(await attached(connection), [undefined, { reasoning_content: 'I think' }]);
  t.strictSame(await attached(connection), [undefined]);
  server.enqueue(stream('stop', ...thoughts, { content: 'a' }));
  t.strictSame(await attached(connection, toolTurn), [{ reasoning_content: 'I think' }], 'the last answer of such a turn');
  server.enqueue(stream('tool_calls', { reasoning: 'hm' }, call));
  const groq = connect(t, { baseUrl: server.url, provider: 'groq' });
  t.strictSame(await attached(groq), [undefined, undefined], 'unless the server refuses it');
});

t.test('blocks of reasoning are joined, shown, and kept', async (t) => {
  const { server, ...connection } = await open(t);
  const blocks = [
    { type: 'reasoning.text', text: 'I ', index: 0, signature: null },
    { type: 'reasoning.text', text: 'think', index: 0, signature: 'sig' },
    { type: 'reasoning.encrypted', data: 'AA', index: 1 },
    { type: 'reasoning.encrypted', data: 'BB' },
  ];
  const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] };
  const script = stream('tool_calls', ...blocks.map((block) => ({ reasoning_details: [block] })), call);
  server.enqueue(script, script);
  t.strictSame(await attached(connection), [
    undefined,
    {
      reasoning_details: [
        { type: 'reasoning.text', text: 'I think', index: 0, signature: 'sig' },
        { type: 'reasoning.encrypted', data: 'AA', index: 1 },
        { type: 'reasoning.encrypted', data: 'BB' },
      ],
    },
  ]);
  const shown: string[] = [];
  for await (const batch of connection.connector.stream(modelRequest('Hi'), new AbortController().signal))
    for (const event of batch) if (event.type === 'reasoning') shown.push(event.text);
  t.same(shown, ['I ', 'think']);
});

t.test('keys that would set a prototype are not kept', async (t) => {
  const { server, ...connection } = await open(t);
  const raw = '{"choices":[{"message":{"content":"a","extra_content":{"a":1,"__proto__":{"b":2}}},"finish_reason":"stop"}]}';
  server.enqueue({ raw: [raw], contentType: 'application/json' });
  t.strictSame(await attached(connection), [{ extra_content: { a: 1 } }]);
});

t.test('each item of a whole answer is a call of its own, whatever its id', async (t) => {
  const { server, connector } = await open(t);
  const call = (name: string, args: string) => ({ id: 'same', type: 'function', function: { name, arguments: args } });
  const tool_calls = [call('f', '{"a":1}'), call('g', '{"b":2}'), call('g', '{"b":2}')];
  server.enqueue({
    raw: [JSON.stringify({ choices: [{ message: { content: null, tool_calls }, finish_reason: 'tool_calls' }] })],
    contentType: 'application/json',
  });
  const events: ModelEvent[] = [];
  for await (const batch of connector.stream(modelRequest('Hi', { incremental: false }), new AbortController().signal))
    events.push(...batch);
  const calls = events.flatMap((event) => (event.type === 'tool-call' ? [event] : []));
  t.same(
    calls.map(({ name, arguments: args }) => `${name} ${args}`),
    ['f {"a":1}', 'g {"b":2}', 'g {"b":2}'],
  );
  t.equal(new Set(calls.map(({ id }) => id)).size, 3);
});

t.test('the preset takes no parameters that the server refuses, and is described', async (t) => {
  const { connector } = connect(t, { baseUrl: 'https://api.mistral.ai/v1' });
  t.notOk(connector.supportsParam('seed'));
  t.ok(connector.supportsParam('top_p'));
  t.match(ModelConnectors.describe?.(connector), [
    { kind: 'detail', label: 'provider', text: 'mistral (known by its host)' },
    {},
  ]);
  t.match(connect(t, { baseUrl: 'https://me.openai.azure.com/v1' }).connector.describe?.(), [
    { text: 'azure (known by its host)' },
  ]);
});

t.test('an azure connection sends its key in its own header', async (t) => {
  const { server, connector } = await open(t, { provider: 'azure' });
  for await (const _ of connector.stream(modelRequest('Hi'), new AbortController().signal));
  t.match(server.requests[0]?.headers, { 'api-key': 'sk-very-secret', authorization: undefined });
});
