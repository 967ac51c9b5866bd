import { TurnError } from '@plugboard/kernel/contracts';
import { namingItems } from '@plugboard/open-responses';
import t from 'tap';
import { messagesOf, someMessagesOf } from '../src/items/items-to-messages.js';
import { errorOf } from './support/error-of.js';

const messages = (...items: unknown[]) => messagesOf(items, undefined).messages;
const user = (content: unknown) => ({ type: 'message', role: 'user', content });
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'weather', arguments: '{}' });
const part = (id: string) => ({ id, type: 'function', function: { name: 'weather', arguments: '{}' } });

t.test('a message may be text or parts, with or without a type', async (t) => {
  t.strictSame(
    messages(
      { role: 'user', content: 'Hello' },
      { type: null, role: 'user', content: [] },
      user([
        { type: 'input_text', text: 'Good ' },
        { type: 'input_text', text: 'morning' },
      ]),
      { type: 'message', role: 'assistant', id: 'msg_1', status: 'completed', phase: null, content: 'Hi.' },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'Well, ', annotations: [] },
          { type: 'output_text', text: 'hi.' },
        ],
      },
    ),
    [
      { role: 'user', content: 'Hello' },
      { role: 'user', content: '' },
      { role: 'user', content: 'Good morning' },
      { role: 'assistant', content: 'Hi.' },
      { role: 'assistant', content: 'Well, hi.' },
    ],
  );
});

t.test('images, audio and files are part of a user message', async (t) => {
  t.strictSame(
    messages(
      user([
        { type: 'input_text', text: 'See' },
        { type: 'input_image', image_url: 'https://images.example/1.png', detail: null, file_id: null },
        { type: 'input_image', image_url: 'https://images.example/2.png', detail: 'low' },
        { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
        { type: 'input_file', file_data: 'AA==', filename: 'a.pdf' },
        { type: 'input_file', file_data: 'AA==' },
      ]),
    ),
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'See' },
          { type: 'image_url', image_url: { url: 'https://images.example/1.png' } },
          { type: 'image_url', image_url: { url: 'https://images.example/2.png', detail: 'low' } },
          { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
          { type: 'file', file: { filename: 'a.pdf', file_data: 'AA==' } },
          { type: 'file', file: { file_data: 'AA==' } },
        ],
      },
    ],
  );
});

t.test('a refusal is part of the assistant message', async (t) => {
  t.strictSame(
    messages(
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'Well,' },
          { type: 'refusal', refusal: 'no' },
          { type: 'refusal', refusal: '.' },
        ],
      },
    ),
    [
      { role: 'assistant', content: null, refusal: 'No.' },
      { role: 'assistant', content: 'Well,', refusal: 'no.' },
    ],
  );
});

t.test('consecutive calls belong to one step with the text before them', async (t) => {
  const given = messagesOf(
    [
      user('Rain?'),
      { role: 'assistant', content: 'Wait.' },
      call('a'),
      call('b'),
      { type: 'function_call_output', call_id: 'a', output: 'Yes' },
      {
        type: 'function_call_output',
        call_id: 'b',
        output: [
          { type: 'input_text', text: 'N' },
          { type: 'input_text', text: 'o' },
        ],
      },
      call('c'),
    ],
    undefined,
  );
  t.strictSame(given.messages, [
    { role: 'user', content: 'Rain?' },
    { role: 'assistant', content: 'Wait.', tool_calls: [part('a'), part('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'Yes' },
    { role: 'tool', tool_call_id: 'b', content: 'No' },
    { role: 'assistant', content: null, tool_calls: [part('c')] },
  ]);
  t.strictSame([...given.origins.values()], [0, 1, 4, 5, 6]);
  t.strictSame(messages({ role: 'assistant', content: '' }, call('a')), [
    { role: 'assistant', content: null, tool_calls: [part('a')] },
  ]);
});

t.test('system messages are refused with the reason', async (t) => {
  for (const role of ['system', 'developer']) {
    t.match(
      errorOf(() => messages(user('Hi'), { role, content: 'Be brief.' })),
      {
        status: 400,
        code: 'invalid_value',
        param: 'items[1].role',
        message: `Invalid 'items[1].role': a session does not store '${role}' messages, because its agent has its own prompt: send them with each request.`,
      },
    );
  }
});

t.test('an item that cannot be stored gets a 400 that names its place', async (t) => {
  const image = { type: 'input_image', image_url: 'https://images.example/1.png' };
  const cases: [item: unknown, code: string, param: string][] = [
    [7, 'invalid_type', 'items[0]'],
    [null, 'invalid_type', 'items[0]'],
    [[], 'invalid_type', 'items[0]'],
    [{}, 'missing_required_parameter', 'items[0].type'],
    [{ type: 7 }, 'invalid_type', 'items[0].type'],
    [{ type: 'reasoning', summary: [] }, 'invalid_value', 'items[0].type'],
    [{ type: 'item_reference', id: 'msg_1' }, 'invalid_value', 'items[0].type'],
    [{ type: 'mcp_call' }, 'invalid_value', 'items[0].type'],
    [{ type: 'message' }, 'missing_required_parameter', 'items[0].role'],
    [{ role: 'critic', content: '' }, 'invalid_value', 'items[0].role'],
    [{ role: 'user' }, 'missing_required_parameter', 'items[0].content'],
    [user(7), 'invalid_type', 'items[0].content'],
    [user([7]), 'invalid_type', 'items[0].content[0]'],
    [user([{}]), 'missing_required_parameter', 'items[0].content[0].type'],
    [user([{ type: 'text', text: '' }]), 'invalid_value', 'items[0].content[0].type'],
    [user([{ type: 'constructor' }]), 'invalid_value', 'items[0].content[0].type'],
    [user([{ type: '__proto__' }]), 'invalid_value', 'items[0].content[0].type'],
    [user([{ type: 'output_text', text: '' }]), 'invalid_value', 'items[0].content[0].type'],
    [user([{ type: 'input_text' }]), 'missing_required_parameter', 'items[0].content[0].text'],
    [user([{ type: 'input_text', text: 7 }]), 'invalid_type', 'items[0].content[0].text'],
    [user([{ ...image, image_url: null }]), 'missing_required_parameter', 'items[0].content[0].image_url'],
    [user([{ ...image, file_id: 'file_1' }]), 'invalid_value', 'items[0].content[0].file_id'],
    [user([{ ...image, detail: 7 }]), 'invalid_type', 'items[0].content[0].detail'],
    [user([{ type: 'input_file', file_id: 'file_1' }]), 'invalid_value', 'items[0].content[0].file_id'],
    [user([{ type: 'input_file', file_url: 'https://files.example' }]), 'invalid_value', 'items[0].content[0].file_url'],
    [user([{ type: 'input_file' }]), 'missing_required_parameter', 'items[0].content[0].file_data'],
    [user([{ type: 'input_audio', input_audio: {} }]), 'missing_required_parameter', 'items[0].content[0].input_audio.data'],
    [{ role: 'assistant', content: [{ type: 'input_text', text: '' }] }, 'invalid_value', 'items[0].content[0].type'],
    [{ ...call('a'), call_id: '' }, 'invalid_value', 'items[0].call_id'],
    [{ ...call('a'), call_id: undefined }, 'missing_required_parameter', 'items[0].call_id'],
    [{ ...call('a'), name: 'wetter äöü' }, 'invalid_value', 'items[0].name'],
    [{ ...call('a'), name: 'n'.repeat(65) }, 'invalid_value', 'items[0].name'],
    [{ ...call('a'), arguments: {} }, 'invalid_type', 'items[0].arguments'],
    [{ type: 'function_call_output', call_id: 'a' }, 'missing_required_parameter', 'items[0].output'],
    [{ type: 'function_call_output', call_id: 'a', output: [image] }, 'invalid_value', 'items[0].output[0].type'],
    [user('x'.repeat(10 * 1024 * 1024 + 1)), 'string_above_max_length', 'items[0].content'],
  ];
  for (const [item, code, param] of cases) {
    const { message, ...rest } = errorOf(() => messages(item));
    t.strictSame(rest, { status: 400, code, param }, JSON.stringify(item)?.slice(0, 80));
  }
  t.match(errorOf(() => messages({ type: 'reasoning' })).message, /'message', 'function_call', and 'function_call_output'/);
});

t.test('items are a list of at most 20, and not empty where required', async (t) => {
  t.match(
    errorOf(() => messagesOf({}, undefined)),
    { code: 'invalid_type', param: 'items' },
  );
  t.match(
    errorOf(() => messagesOf(Array(21).fill(user('x')), undefined)),
    { code: 'array_above_max_length', param: 'items' },
  );
  t.match(
    errorOf(() => someMessagesOf([], undefined)),
    { code: 'empty_array', param: 'items' },
  );
  t.equal(someMessagesOf(Array(20).fill(user('x')), undefined).messages.length, 20);
  t.strictSame(messagesOf([], undefined).messages, []);
});

t.test('a text-only model refuses other parts by name', async (t) => {
  const image = user([
    { type: 'input_text', text: 'See' },
    { type: 'input_image', image_url: 'https://images.example/1.png' },
  ]);
  t.match(
    errorOf(() => messagesOf([user('Hi'), image], 'fast')),
    {
      param: 'items[1].content[1]',
      message: "Invalid value: 'input_image'. The model connection 'fast' takes text only.",
    },
  );
  t.strictSame(messagesOf([user([{ type: 'input_text', text: 'See' }])], 'fast').messages, [{ role: 'user', content: 'See' }]);
});

t.test('errors of the runtime about messages refer to the items', async (t) => {
  const given = messagesOf([user('Rain?'), call('a'), call('b'), user('Well?')], undefined);
  const named = (error: Error) =>
    namingItems(given, 'items', Promise.reject(error)).then(
      () => undefined,
      (error) => (error instanceof TurnError ? { message: error.message, param: error.options.param } : error),
    );
  t.strictSame(
    await named(new TurnError('invalid_request', 'messages[2] follows messages[1].', { param: 'messages[2].tool_call_id' })),
    {
      message: 'items[3] follows items[1].',
      param: 'items[3].call_id',
    },
  );
  t.strictSame(await named(new TurnError('invalid_request', 'Some are missing.', { param: 'messages' })), {
    message: 'Some are missing.',
    param: 'items',
  });
  t.strictSame(await named(new TurnError('invalid_request', 'messages[9] is invalid.')), {
    message: 'items[9] is invalid.',
    param: 'items',
  });
  const other = new Error('messages[2]');
  t.equal(await named(other), other);
  t.strictSame(await named(new TurnError('session_busy', 'messages[2]')), { message: 'messages[2]', param: undefined });
  t.equal(await namingItems(given, 'items', Promise.resolve(7)), 7);
});
