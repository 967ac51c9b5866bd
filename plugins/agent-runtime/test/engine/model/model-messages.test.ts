import type { Message, ModelConnector } from '@plugboard/kernel';
import t from 'tap';
import { messagesFor } from '../../../src/engine/model/model-messages.js';

const connector = (...input: ('text' | 'image')[]) => ({ input }) as Partial<ModelConnector> as ModelConnector;
const seeing = connector('text', 'image');
const blind = connector('text');
const IMAGE = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } } as const;

function call(name: string, args: string, id = 'c'): Message {
  return { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: { name, arguments: args } }] };
}

t.test('messages that every server accepts are unchanged', async (t) => {
  const messages: Message[] = [
    { role: 'user', content: 'Hi' },
    call('f', '{"a":1}'),
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
  ];
  for (const [i, message] of messagesFor(blind, messages).entries()) t.equal(message, messages[i]);
});

t.test('names and arguments of calls are corrected, once per message', async (t) => {
  for (const [name, args, validName, validArgs] of [
    ['a b', '{}', 'a_b', '{}'],
    ['', '{}', '_', '{}'],
    ['x'.repeat(65), '{}', 'x'.repeat(64), '{}'],
    ['f', '', 'f', '{}'],
    ['f', 'null', 'f', '{}'],
    ['f', '{"a":', 'f', '{}'],
    ['f', '"text"', 'f', '{}'],
    ['f', '{"\\ud83d":["\\uD83D"],"n":1}', 'f', '{"\ufffd":["\ufffd"],"n":1}'],
    ['f', '{"a":"\\ud83d\\ude00", "n":1e3}', 'f', '{"a":"\\ud83d\\ude00", "n":1e3}'],
  ] as const) {
    const messages = [call(name, args)];
    const [first] = messagesFor(seeing, messages);
    t.same(first, call(validName, validArgs));
    t.equal(messagesFor(seeing, messages)[0], first);
  }
});

t.test('calls of custom tools and deprecated function calls become tool calls', async (t) => {
  const custom: Message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'custom', custom: { name: 'a b', input: 'free "text"' } }],
  };
  t.same(messagesFor(seeing, [custom]), [call('a_b', '{"input":"free \\"text\\""}')]);
  const old = (name: string): Message => ({ role: 'assistant', content: null, function_call: { name, arguments: '{"a":' } });
  const spoken: Message = { role: 'assistant', content: null, audio: { id: 'audio_1' } };
  const result: Message = { role: 'function', name: 'f g', content: null };
  t.same(messagesFor(seeing, [old('f g'), result, old('h'), result, spoken, result, old('i')]), [
    call('f_g', '{}', 'function_f_g'),
    { role: 'tool', tool_call_id: 'function_f_g', content: 'The arguments are not a valid JSON object: {"a":\n' },
    call('h', '{}', 'function_h'),
    { role: 'tool', tool_call_id: 'function_h', content: 'The arguments are not a valid JSON object: {"a":\n' },
    { role: 'assistant', content: '' },
    { role: 'user', content: 'f g: ' },
    { role: 'assistant', content: '' },
  ]);
});

t.test('the result of a call with invalid arguments names the fault once', async (t) => {
  const result = (content: string): Message => ({ role: 'tool', tool_call_id: 'c', content });
  const resultContent = (content: string) => messagesFor(seeing, [call('f', '{"a":'), result(content)])[1]?.content;
  t.equal(resultContent('which?'), 'The arguments are not a valid JSON object: {"a":\nwhich?');
  t.equal(resultContent('The arguments are not a valid JSON object: {"a":'), 'The arguments are not a valid JSON object: {"a":');
  t.equal(messagesFor(seeing, [call('f', '', 'c'), result('ok')])[1]?.content, 'ok', 'missing arguments are not an error');
});

t.test('a text-only connection receives text', async (t) => {
  const messages: Message[] = [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    { role: 'user', content: [{ type: 'text', text: 'Look' }, IMAGE] },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I ' },
        { type: 'refusal', refusal: 'will not.' },
      ],
    },
  ];
  t.same(
    messagesFor(blind, messages).map(({ content }) => content),
    ['ab', 'Look\n[image omitted: this model takes text only]', 'I will not.'],
  );
  t.equal(messagesFor(seeing, messages)[1], messages[1]);
});
