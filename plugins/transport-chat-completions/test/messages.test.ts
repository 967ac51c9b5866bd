import { ProtocolError } from '@plugboard/openai-protocol';
import t from 'tap';
import { assertText, conversationOf } from '../src/request/messages.js';
import { parseRequest } from '../src/request/validate.js';

/** The kernel's messages of a request with these. */
function conversation(...messages: object[]) {
  return conversationOf(parseRequest({ model: 'a', messages }).messages);
}

function fault(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (error instanceof ProtocolError) return { status: error.status, ...error.body.error };
    throw error;
  }
  throw new Error('nothing was refused');
}

const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'low' } };

t.test('C-050 C-057 text messages are passed on unchanged, even two of one role', async (t) => {
  const messages = [
    { role: 'system', content: 'Be short.' },
    { role: 'user', content: 'Hi' },
    { role: 'user', content: 'there', name: 'ann' },
    { role: 'assistant', content: 'Hello' },
    { role: 'function', content: null, name: 'f' },
    { role: 'function', content: '7', name: 'f' },
  ];
  t.same(conversation(...messages), messages);
});

t.test('C-033 a message without content is refused after all other faults', async (t) => {
  for (const role of ['user', 'system', 'developer', 'assistant']) {
    t.same(
      fault(() => conversation({ role: 'user', content: 'a' }, { role, content: null })),
      {
        status: 400,
        type: 'invalid_request_error',
        message: "Invalid value for 'content': expected a string, got null.",
        param: 'messages.[1].content',
        code: null,
      },
    );
  }
  t.match(
    fault(() => conversation({ role: 'tool', tool_call_id: 'c' })),
    { param: 'messages.[0].content' },
  );
});

t.test('C-033 an assistant message needs no content beside calls, a refusal or audio', async (t) => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const places = [
    { tool_calls: [call] },
    { function_call: { name: 'f', arguments: '{}' } },
    { refusal: 'No.' },
    { audio: { id: 'a' } },
  ];
  for (const place of places)
    t.same(conversation({ role: 'assistant', ...place }), [{ role: 'assistant', content: null, ...place }]);
  t.match(
    fault(() => conversation({ role: 'assistant', content: null, tool_calls: [] })),
    { param: 'messages.[0].content' },
  );
});

t.test('C-034 empty content is content', async (t) => {
  t.same(conversation({ role: 'user', content: '' }, { role: 'user', content: [] }), [
    { role: 'user', content: '' },
    { role: 'user', content: '' },
  ]);
});

t.test('C-051 text parts equal their concatenation', async (t) => {
  const content = [
    { type: 'text', text: 'one ' },
    { type: 'text', text: 'two' },
  ];
  const messages = conversation(
    { role: 'system', content },
    { role: 'user', content },
    { role: 'assistant', content },
    { role: 'tool', tool_call_id: 'c', content },
  );
  for (const message of messages) t.equal(message.content, 'one two');
});

t.test('C-052 a developer message becomes a system message', async (t) => {
  t.same(conversation({ role: 'developer', content: 'Be short.' }), [{ role: 'system', content: 'Be short.' }]);
});

t.test('C-055 parts other than text are passed on unchanged', async (t) => {
  const content = [
    { type: 'text', text: 'What is this?', prompt_cache_breakpoint: { mode: 'explicit' } },
    IMAGE,
    { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
    { type: 'file', file: { filename: 'a.pdf', file_data: 'AA==' } },
    { type: 'video_url', video_url: { url: 'https://example.org/a.mp4' } },
  ];
  t.same(conversation({ role: 'user', content }), [{ role: 'user', content }]);
});

t.test('C-056 tool calls and their results are passed on in order', async (t) => {
  const messages = [
    { role: 'user', content: 'What time is it?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'clock', arguments: '{}' }, extra_content: { signature: 'x' } },
        { id: 'c2', type: 'custom', custom: { name: 'shell', input: 'date' } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: '12:00' },
    { role: 'tool', tool_call_id: 'c2', content: 'noon' },
  ];
  t.same(conversation(...messages), messages);
});

t.test('C-058 unknown fields and nulls in messages are dropped', async (t) => {
  const noise = { reasoning_content: 'hm', annotations: [], name: null, audio: null, function_call: null, refusal: null };
  t.same(
    conversation(
      { role: 'user', content: 'Hi', name: null, prompt_cache_breakpoint: { mode: 'explicit' } },
      { role: 'assistant', content: 'Hello', tool_calls: null, ...noise },
    ),
    [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
    ],
  );
});

t.test('a text of more than 10 MiB is refused with its place', async (t) => {
  const text = 'x'.repeat(10 * 1024 * 1024 + 1);
  const tooLong = { status: 400, code: 'string_above_max_length' };
  t.match(
    fault(() => conversation({ role: 'user', content: text })),
    { ...tooLong, param: 'messages[0].content' },
  );
  t.match(
    fault(() => conversation({ role: 'function', name: 'f', content: text })),
    { ...tooLong, param: 'messages[0].content' },
  );
  t.match(
    fault(() => conversation({ role: 'user', content: [IMAGE, { type: 'text', text }] })),
    {
      ...tooLong,
      param: 'messages[0].content[1].text',
    },
  );
});

t.test('a file id is refused because the server stores no files', async (t) => {
  t.match(
    fault(() => conversation({ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] })),
    {
      status: 400,
      param: 'messages[0].content[0].file.file_id',
      code: 'invalid_value',
    },
  );
});

t.test('content that no connection accepts is refused with its place, unless the session already has it', async (t) => {
  const messages = conversation(
    { role: 'user', content: 'Hi' },
    { role: 'user', content: [{ type: 'text', text: 'a' }, IMAGE] },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
    { role: 'user', content: 'Why?' },
  );
  t.same(
    fault(() => assertText(messages, 'fast', 0)),
    {
      status: 400,
      type: 'invalid_request_error',
      message: "Invalid value: 'image_url'. The model connection 'fast' takes text only.",
      param: 'messages[1].content[1]',
      code: 'invalid_value',
    },
  );
  t.doesNotThrow(() => assertText(messages, 'fast', 2));
});
