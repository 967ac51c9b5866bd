import { invalidValue } from '@plugboard/openai-protocol';
import { HttpError } from '@plugboard/transport-http';
import t from 'tap';
import { parseCompaction, parseRequest } from '../src/index.js';
import { type InputRules, messagesOf } from '../src/items/input-messages.js';

/** What a request is refused with. */
function refusal(work: () => unknown): { param: unknown; code: unknown; message: string } {
  try {
    work();
  } catch (error) {
    if (error instanceof HttpError) return (error.body as { error: { param: unknown; code: unknown; message: string } }).error;
    throw error;
  }
  throw new Error('accepted');
}

t.test('a body is checked field by field, and the first fault is named', async (t) => {
  for (const [body, param, message] of [
    [[], null, /must be one JSON object/],
    [null, null, /must be one JSON object/],
    [{ model: 7, input: 'x' }, 'model', /string/],
    [{ model: 'x'.repeat(300), input: 'x' }, 'model', /./],
    [{ input: 7 }, 'input', /string or array/],
    [{}, 'input', /Missing required parameter/],
    [{ input: [] }, 'input', /empty/],
    [{ input: 'x', prompt: { id: 'p' } }, 'prompt', /no prompt templates/],
    [{ input: 'x', background: true }, 'background', /in the background/],
    [{ input: 'x', previous_response_id: 'a', conversation: 'b' }, 'previous_response_id', /either/],
    [{ input: 'x', conversation: {} }, 'conversation.id', /./],
    [{ input: 'x', tools: [{ name: 'f' }] }, 'tools[0].type', /Missing/],
    [{ input: 'x', tools: [{ type: 'namespace', name: 'n' }] }, 'tools[0].tools', /Missing/],
    [
      { input: 'x', tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }] },
      'tools[0].tools[0].name',
      /Missing/,
    ],
    [{ input: 'x', tools: [{ type: 'function', name: 'a b' }] }, 'tools[0].name', /pattern/],
    [{ input: 'x', tool_choice: 'always' }, 'tool_choice', /./],
    [{ input: 'x', text: { format: { type: 'xml' } } }, 'text.format.type', /./],
    [{ input: 'x', max_output_tokens: 0 }, 'max_output_tokens', /./],
    [{ input: 'x', truncation: 'some' }, 'truncation', /./],
    [{ input: 'x', metadata: { a: 7 } }, 'metadata.a', /./],
    [{ input: 'x', top_logprobs: 21 }, 'top_logprobs', /./],
  ] as const) {
    t.match(
      refusal(() => parseRequest(body)),
      { param, message },
      JSON.stringify(body),
    );
  }
  t.same(parseRequest({ input: '', model: null, store: null, unknown: 1 }), { input: '', unknown: 1 });
  const unknown = Object.fromEntries(Array.from({ length: 129 }, (_, at) => [`x${at}`, 1]));
  t.match(
    refusal(() => parseRequest({ input: 'x', ...unknown })),
    { code: 'too_many_fields' },
  );
  t.same(parseRequest({ generate: false }), { generate: false }, 'a warm-up needs no input');
});

t.test('a compaction needs a model, and something to compact', async (t) => {
  t.match(
    refusal(() => parseCompaction({ input: 'x' })),
    { param: 'model' },
  );
  t.match(
    refusal(() => parseCompaction({ model: 'a' })),
    { param: 'input' },
  );
  t.same(parseCompaction({ model: 'a', previous_response_id: 'resp_x' }), { model: 'a', previous_response_id: 'resp_x' });
});

const rules: InputRules = {
  param: 'input',
  maxItems: 4,
  textOnly: undefined,
  purpose: 'turn',
  openReasoning: () => undefined,
  nameAtModel: (entry, tool) => `${entry}__${tool}`,
  readSummary: (content, param) => {
    if (content === 'sealed') return 'They met.';
    throw invalidValue(param, 'it is not a summary');
  },
};

t.test('items become messages', async (t) => {
  const { messages, origins } = messagesOf(
    [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
      { type: 'reasoning', summary: [] },
      { type: 'mcp_call', id: 'mcp_1', server_label: 'files', name: 'read', arguments: '', output: 'text' },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'so' },
          { type: 'refusal', refusal: 'no' },
        ],
      },
    ],
    rules,
  );
  t.same(messages, [
    { role: 'user', content: 'ab' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'mcp_1', type: 'function', function: { name: 'files__read', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'mcp_1', content: 'text' },
    { role: 'assistant', content: 'so', refusal: 'no' },
  ]);
  t.same([...origins.values()], [0, 2, 2, 3]);
  t.same(messagesOf([{ type: 'mcp_call', name: 'hidden', id: 'x', output: null }], rules).messages, []);
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  t.match(messagesOf([{ role: 'assistant', content: 'I look.' }, call], rules).messages, [
    { role: 'assistant', content: 'I look.', tool_calls: [{ id: 'c' }] },
  ]);
});

t.test('a failed call of the server keeps its error', async (t) => {
  const call = { type: 'mcp_call', id: 'mcp_1', server_label: 'files', name: 'read', arguments: '{}', output: null };
  const resultOf = (error: unknown) => messagesOf([{ ...call, error }], rules).messages[1];
  const text = 'No such file.';
  const error = { type: 'mcp_tool_execution_error', content: [{ type: 'text', text }] };
  for (const one of [error, text, { type: 'http_error', message: text }]) {
    t.same(resultOf(one), { role: 'tool', tool_call_id: 'mcp_1', content: text });
  }
  t.equal(resultOf(null), undefined);
});

t.test('a summary becomes part of the user message that follows it, else a message of its own', async (t) => {
  const item = { type: 'compaction', encrypted_content: 'sealed' };
  const { messages, origins } = messagesOf([item, { role: 'user', content: 'And then?' }], rules);
  t.equal(messages.length, 1);
  t.match(messages[0]?.content, /They met\.[\s\S]*And then\?$/);
  t.same([...origins.values()], [1]);
  const alone = messagesOf([item, { role: 'assistant', content: 'Yes.' }, item], rules);
  t.same(
    alone.messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  t.same([...alone.origins.values()], [0, 1, 2]);
  const session = { param: 'items', maxItems: 4, textOnly: undefined, purpose: 'session' } as const;
  t.match(
    refusal(() => messagesOf([item], session)),
    { param: 'items[0].type' },
  );
});

t.test('content parts become those of chat completions; what would have to be fetched is refused', async (t) => {
  const user = (part: object) => messagesOf([{ role: 'user', content: [part] }], rules).messages[0]?.content;
  const url = 'data:image/png;base64,AA==';
  t.same(user({ type: 'input_image', image_url: url, detail: 'low' }), [
    { type: 'image_url', image_url: { url, detail: 'low' } },
  ]);
  t.same(user({ type: 'input_file', filename: 'a.pdf', file_data: url }), [
    { type: 'file', file: { filename: 'a.pdf', file_data: url } },
  ]);
  t.same(user({ type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }), [
    { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
  ]);
  for (const [part, param] of [
    [{ type: 'input_file', file_url: 'http://x' }, 'file_url'],
    [{ type: 'input_file', file_id: 'x' }, 'file_id'],
    [{ type: 'input_image', file_id: 'x' }, 'file_id'],
    [{ type: 'output_text', text: 'x' }, 'type'],
    [{ type: 'constructor' }, 'type'],
    [{}, 'type'],
  ] as const) {
    t.match(
      refusal(() => user(part)),
      { param: `input[0].content[0].${param}` },
    );
  }
});

t.test('items that a model provider would refuse are named', async (t) => {
  const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
  for (const [items, param] of [
    ['x', 'input'],
    [[1], 'input[0]'],
    [Array(5).fill({ role: 'user', content: 'x' }), 'input'],
    [[{ type: 'custom_tool_call', call_id: 'c', name: 'f' }], 'input[0].input'],
    [[{ type: 'local_shell_call', id: 'c' }], 'input[0].action'],
    [[{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_file' }] }], 'input[0].output[0].type'],
    [[{}], 'input[0].type'],
    [[{ role: 'owner', content: 'x' }], 'input[0].role'],
    [[{ role: 'user' }], 'input[0].content'],
    [[{ role: 'user', content: 7 }], 'input[0].content'],
    [[{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }], 'input[0].content[0].type'],
    [[{ role: 'system', content: [{ type: 'output_text', text: 'x' }] }], 'input[0].content[0].type'],
    [[{ ...call, name: 'a b' }], 'input[0].name'],
    [[{ ...call, call_id: '' }], 'input[0].call_id'],
    [[call, call], 'input[1].call_id'],
    [[{ type: 'compaction', encrypted_content: 'x' }], 'input[0].encrypted_content'],
    [[{ type: 'compaction' }], 'input[0].encrypted_content'],
  ] as const) {
    t.match(
      refusal(() => messagesOf(items, rules)),
      { param },
      JSON.stringify(items).slice(0, 80),
    );
  }
  const session = { ...rules, purpose: 'session' } as const;
  for (const item of [
    { role: 'system', content: 'x' },
    { role: 'owner', content: 'x' },
  ]) {
    t.match(
      refusal(() => messagesOf([item], session)),
      { param: 'input[0].role' },
    );
  }
});

const user = { role: 'user', content: 'x' };
const call = (id: string, more: object = {}) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}', ...more });
const output = (id: string, text: unknown = 'done') => ({ type: 'function_call_output', call_id: id, output: text });

t.test('CL-4 calls of other kinds are history, and items of unknown types are left out and named', async (t) => {
  const many = { ...rules, maxItems: 20 };
  const { messages, ignored, origins } = messagesOf(
    [
      user,
      { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** "x"', namespace: 'n' },
      { type: 'custom_tool_call_output', call_id: 'a', output: 'Done' },
      { type: 'local_shell_call', id: 'b', action: { type: 'exec', command: ['ls'] }, status: 'completed' },
      { type: 'local_shell_call_output', id: 'b', output: 'a.txt' },
      { type: 'web_search_call', id: 'w', status: 'completed' },
      { type: 'reasoning', id: 'r', summary: [], encrypted_content: 'x' },
      { type: 'additional_tools', tools: [] },
      { type: 'program', of: 'tomorrow' },
      { type: 'constructor' },
      call('c', { name: 'stop', namespace: 'agents' }),
      output('c'),
    ],
    many,
  );
  t.same(ignored, ['input.6.encrypted_content', 'input.8.program', 'input.9.constructor']);
  t.same(
    messages.flatMap((message): unknown => (message.role === 'assistant' ? message.tool_calls : [message.content])),
    [
      'x',
      { id: 'a', type: 'function', function: { name: 'n__apply_patch', arguments: '{"input":"*** \\"x\\""}' } },
      'Done',
      { id: 'b', type: 'function', function: { name: 'local_shell', arguments: '{"type":"exec","command":["ls"]}' } },
      'a.txt',
      { id: 'c', type: 'function', function: { name: 'agents__stop', arguments: '{}' } },
      'done',
    ],
  );
  t.same([...origins.values()], [0, 1, 2, 3, 4, 10, 11]);
});

t.test('CL-7 a result that is sent twice is taken once', async (t) => {
  const items = [user, call('a'), output('a', 'one'), output('a', 'two'), { role: 'assistant', content: 'so' }, call('a')];
  const { messages } = messagesOf([...items, output('a', 'three')], { ...rules, maxItems: 20 });
  t.same(
    messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
    ['one', 'three'],
    'a call with the same id later has its own result',
  );
  t.same(messagesOf([output('a', 'one'), output('a', 'one')], rules).messages.length, 1);
});

t.test('CL-9 images in the results of parallel calls follow all of these results', async (t) => {
  const url = 'data:image/png;base64,AA==';
  const text = { type: 'input_text', text: 'See:' };
  const image = { type: 'input_image', image_url: url };
  const { messages, origins } = messagesOf([call('a'), call('b'), output('a', [text, image]), output('b', [image])], rules);
  t.match(messages.slice(1), [
    { role: 'tool', tool_call_id: 'a', content: 'See:' },
    { role: 'tool', tool_call_id: 'b', content: '' },
    { role: 'user', content: [{ type: 'text' }, { image_url: { url } }, { image_url: { url } }] },
  ]);
  t.same([...origins.values()], [0, 2, 3, 3]);
  const next = messagesOf([call('a'), output('a', [image]), user], rules).messages;
  t.same(
    next.map(({ role }) => role),
    ['assistant', 'tool', 'user', 'user'],
  );
});
