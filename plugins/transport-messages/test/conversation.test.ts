import t from 'tap';
import { SIGNATURE } from '../src/request/content.js';
import { refusalOf, turnOf } from './support/route.js';

const use = (id: string, input: object = {}) => ({ type: 'tool_use', id, name: 'read', input });
const result = (id: string, content?: unknown, more: object = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  ...(content === undefined ? {} : { content }),
  ...more,
});
const user = (...content: object[]) => ({ role: 'user', content });
const assistant = (...content: object[]) => ({ role: 'assistant', content });
const text = (words: string) => ({ type: 'text', text: words });
const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
const url = 'data:image/png;base64,AAAA';
const call = (id: string, args = '{}') => ({ id, type: 'function', function: { name: 'read', arguments: args } });

async function read(...messages: object[]) {
  const { turn, ignored } = await turnOf({ messages });
  return { messages: turn.messages, ignored };
}

t.test('CL-21 text is sent as text, also of several blocks', async (t) => {
  const { messages } = await read(
    user(text('One.'), { ...text('Two.'), cache_control: { type: 'ephemeral' } }),
    assistant(text('Th'), text('ree.')),
    { role: 'user', content: 'Four.' },
  );
  t.strictSame(messages, [
    { role: 'user', content: 'One.\n\nTwo.' },
    { role: 'assistant', content: 'Three.' },
    { role: 'user', content: 'Four.' },
  ]);
});

t.test('CL-21 images and documents become parts', async (t) => {
  const { messages, ignored } = await read(
    user(
      text('See'),
      png,
      { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
      { type: 'document', title: 'notes', source: { type: 'text', media_type: 'text/plain', data: 'Plain.' } },
      { type: 'document', source: { type: 'content', content: [text('In blocks.')] }, citations: { enabled: true } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBE' } },
      { type: 'search_result', title: 'A', source: 'https://a.example', content: [text('found')] },
    ),
  );
  t.strictSame(messages, [
    {
      role: 'user',
      content: [
        text('See'),
        { type: 'image_url', image_url: { url } },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        text('notes\n\nPlain.'),
        text('In blocks.'),
        { type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBE' } },
        text('A\nhttps://a.example\nfound'),
      ],
    },
  ]);
  t.equal(ignored, 'messages.0.content.4.citations');
});

t.test('CL-21 results directly follow their calls, then their images, then what the user says', async (t) => {
  const { messages } = await read(
    { role: 'user', content: 'Read both.' },
    assistant(text('Reading.'), use('a', { path: 'x' }), use('b')),
    user(text('Here.'), result('b', [text('B'), png]), result('a', 'no such file', { is_error: true })),
    user(text('Go on.')),
  );
  t.match(messages, [
    { role: 'user', content: 'Read both.' },
    { role: 'assistant', content: 'Reading.', tool_calls: [call('a', '{"path":"x"}'), call('b')] },
    { role: 'tool', tool_call_id: 'b', content: 'B' },
    { role: 'tool', tool_call_id: 'a', content: 'Error: no such file' },
    { role: 'user', content: [{ type: 'text' }, { type: 'image_url', image_url: { url } }] },
    { role: 'user', content: 'Here.' },
    { role: 'user', content: 'Go on.' },
  ]);
  t.equal(messages.length, 7);
});

t.test('CL-21 results may be empty, and come in two messages', async (t) => {
  const { messages } = await read(
    { role: 'user', content: 'x' },
    assistant(use('a'), use('b')),
    user(result('a')),
    user(result('b', [{ type: 'tool_reference', tool_name: 'grep' }])),
  );
  t.match(messages.slice(1), [
    { role: 'assistant', content: null },
    { role: 'tool', tool_call_id: 'a', content: '' },
    { role: 'tool', tool_call_id: 'b', content: 'The tool grep' },
  ]);
});

t.test('CL-21 a result without its call and a call without its result are refused', async (t) => {
  const at = (...messages: object[]) => refusalOf({ messages });
  const ask = { role: 'user', content: 'x' };
  t.match(await at(user(result('a', 'A'))), {
    status: 400,
    type: 'invalid_request_error',
    message: /^messages\.0\.content\.0: unexpected `tool_use_id`.*: a\./,
    turns: 0,
  });
  t.match(await at(ask, assistant(use('a')), ask), {
    status: 400,
    message: /^messages\.1: `tool_use` ids were found without `tool_result` blocks immediately after: a\./,
  });
  t.match(await at(ask, assistant(use('a')), user(result('a'), result('a'))), {
    message: /^messages\.2\.content\.1: unexpected/,
  });
  t.match(await at(ask, assistant(use('a'), use('a')), user(result('a'))), {
    message: /^messages\.1\.content\.1: `tool_use` ids must be unique/,
  });
  t.match(await at(ask, assistant(use('a')), assistant(text('?')), user(result('a'))), { message: /^messages\.1: / });
});

t.test('CL-21 blocks of other types are left out and named', async (t) => {
  const { messages, ignored } = await read(
    { role: 'user', content: 'x' },
    assistant({ type: 'server_tool_use', id: 's', name: 'web_search', input: {} }, text('Found.'), { type: 'dream' }),
    user({ type: 'container_upload', file_id: 'f' }, text('y')),
  );
  t.strictSame(messages.slice(1), [
    { role: 'assistant', content: 'Found.' },
    { role: 'user', content: 'y' },
  ]);
  t.equal(ignored, 'messages.1.content.0.server_tool_use, messages.1.content.2.dream, messages.2.content.0.container_upload');
});

t.test('CL-21 a request without anything for the model is refused', async (t) => {
  for (const content of ['', [], [{ type: 'dream' }]]) {
    t.match(await refusalOf({ messages: [{ role: 'user', content }], system: 'Be brief.' }), {
      status: 400,
      message: /^messages: no message has content for the model/,
      turns: 0,
    });
  }
});

t.test('CL-28 shown thinking that comes back is left out, also where nothing else is left', async (t) => {
  const { messages, ignored } = await read(
    { role: 'user', content: 'x' },
    assistant({ type: 'thinking', thinking: 'Hm.', signature: SIGNATURE }),
    { role: 'user', content: 'y' },
  );
  t.strictSame(messages, [
    { role: 'user', content: 'x' },
    { role: 'user', content: 'y' },
  ]);
  t.equal(ignored, undefined);
});

t.test('CL-23 shown calls of the agent go back to the model with their results', async (t) => {
  const mcp = (id: string) => ({ type: 'mcp_tool_use', id, name: 'find', server_name: 'files', input: { q: 1 } });
  const found = (id: string, ...content: object[]) => ({ type: 'mcp_tool_result', tool_use_id: id, is_error: false, content });
  const { messages } = await read(
    { role: 'user', content: 'x' },
    assistant(text('One.'), mcp('a'), found('a', text('A')), text('Two.'), mcp('b'), use('c'), found('b', text('B'))),
    user(result('c', 'C')),
  );
  const own = (id: string) => ({ id, type: 'function', function: { name: 'files__find', arguments: '{"q":1}' } });
  t.strictSame(messages.slice(1), [
    { role: 'assistant', content: 'One.', tool_calls: [own('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'A' },
    { role: 'assistant', content: 'Two.', tool_calls: [own('b'), call('c')] },
    { role: 'tool', tool_call_id: 'b', content: 'B' },
    { role: 'tool', tool_call_id: 'c', content: 'C' },
  ]);
  const hidden = await read({ role: 'user', content: 'x' }, assistant(mcp('a'), found('a'), text('Done.')), {
    role: 'user',
    content: 'y',
  });
  t.strictSame(hidden.messages[1], { role: 'assistant', content: 'Done.' });
});

t.test('CL-28 `system` replaces the prompt, and system messages in between stay where they are', async (t) => {
  const { turn } = await turnOf({
    system: [text('Be brief.'), { ...text('Be kind.'), cache_control: { type: 'ephemeral' } }],
    messages: [
      { role: 'user', content: 'x' },
      { role: 'system', content: 'It is night.' },
    ],
  });
  t.strictSame(turn.messages, [
    { role: 'system', content: 'Be brief.\n\nBe kind.' },
    { role: 'user', content: 'x' },
    { role: 'system', content: 'It is night.' },
  ]);
  const billing = text('x-anthropic-billing-header: cc_version=2.1.330.f8c; cc_entrypoint=sdk-cli;');
  const { turn: client, ignored } = await turnOf({ system: [billing, text('Be brief.')] });
  t.match(
    client.messages,
    [{ role: 'system', content: 'Be brief.' }, {}],
    'what changes each time would spoil the cache of the model server',
  );
  t.equal(ignored, 'system.0.x-anthropic-billing-header');
  const { turn: without } = await turnOf({ system: '' });
  t.strictSame(without.messages, [{ role: 'user', content: 'Hi' }]);
});

t.test('a malformed conversation is refused with the path of the fault', async (t) => {
  const problem = async (fields: object) => (await refusalOf(fields)).message;
  t.match(await problem({ messages: [] }), /^messages: at least one message is required/);
  t.match(await problem({ messages: 'x' }), /^messages: Input should be a valid list/);
  t.match(await problem({ messages: ['x'] }), /^messages\.0: Input should be an object/);
  t.match(await problem({ messages: [{ role: 'tool', content: 'x' }] }), /^messages\.0\.role: Input should be 'user'/);
  t.match(await problem({ messages: [{ role: 'user' }] }), /^messages\.0\.content: Field required/);
  t.match(await problem({ messages: [{ role: 'user', content: 7 }] }), /^messages\.0\.content: Input should be a valid list/);
  t.match(await problem({ messages: [user({})] }), /^messages\.0\.content\.0\.type: Field required/);
  t.match(await problem({ messages: [user({ type: 'text' })] }), /^messages\.0\.content\.0\.text: Field required/);
  t.match(await problem({ system: [png] }), /^system\.0\.type: Input should be 'text', got 'image'/);
  const image = (source: object) => problem({ messages: [user({ type: 'image', source })] });
  t.match(await image({ type: 'file', file_id: 'f' }), /^messages\.0\.content\.0\.source\.type: .*does not store or fetch files/);
  t.match(await image({ type: 'url', url: 'file:///etc/passwd' }), /source\.url: Input should be an http or https URL/);
  t.match(
    await image({ type: 'base64', media_type: 'text/html', data: '' }),
    /source\.media_type: 'text\/html' is not supported/,
  );
  t.match(
    await problem({ messages: [{ role: 'user', content: 'x' }, assistant({ ...use('a'), input: [] })] }),
    /^messages\.1\.content\.0\.input: Input should be an object/,
  );
});

t.test('an image for a model that takes text only is refused; one in the result of a tool is left to the runtime', async (t) => {
  const target = { input: ['text'] as const };
  t.match(await refusalOf({ messages: [user(png)] }, { target }), {
    status: 400,
    message: "messages.0.content.0: The model of this agent takes text only, no 'image'",
  });
  const messages = [{ role: 'user', content: 'x' }, assistant(use('a')), user(result('a', [png]))];
  const { turn } = await turnOf({ messages }, { target });
  t.equal(turn.messages.length, 4);
});
