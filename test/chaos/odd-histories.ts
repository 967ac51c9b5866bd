/** Conversations that callers, other connections and old sessions leave, by what is odd in them. */

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const pdf = 'JVBERi0xLjQKJSVFT0YK';
const user = (content: unknown, more: object = {}) => ({ role: 'user', content, ...more });
const answer = (content: unknown, more: object = {}) => ({ role: 'assistant', content, ...more });
const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const text = (value: string) => ({ type: 'text', text: value });
const call = (id: string, name = 'lookup', args = '{}') => ({ id, type: 'function', function: { name, arguments: args } });
const result = (id: string, content: unknown = 'ok') => ({ role: 'tool', tool_call_id: id, content });
/** A turn with calls, their results and an answer. */
const turn = (...calls: readonly { readonly id: string }[]) => [
  user('Go'),
  { role: 'assistant', content: null, tool_calls: calls },
  ...calls.map(({ id }) => result(id)),
  answer('Done.'),
];
const NUL = '\u0000';
const HALF = '\ud83d';

export const ODD_HISTORIES: Readonly<Record<string, readonly object[]>> = {
  'system and developer messages in between': [
    user('Hi'),
    { role: 'developer', content: 'Be kind.' },
    answer('Hello'),
    { role: 'system', content: 'Be brief.' },
    { role: 'system', content: ' ' },
  ],
  'names of participants': [
    { role: 'system', content: 'Be kind.', name: 'the operator' },
    user('Hi', { name: 'John Smith <john@example.com>' }),
    answer('Hello', { name: 'a/b' }),
    user('Hi', { name: 'Jürgen' }),
    answer('Hello'),
  ],
  'calls of custom tools': [
    user('Go'),
    { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'my tool!', input: 'a.*b' } }] },
    result('c1'),
    answer('Done.'),
  ],
  'deprecated function calls': [
    user('Go'),
    { role: 'assistant', content: null, function_call: { name: 'old one', arguments: '{"a":' } },
    { role: 'function', name: 'old one', content: 'ok' },
    answer('Done.'),
    user('Again'),
    { role: 'assistant', content: 'Wait', function_call: { name: 'old', arguments: '{}' } },
    user('Well?'),
    answer('Done.'),
    { role: 'function', name: 'old', content: null },
    answer('Done.'),
  ],
  'spoken answers': [user('Say it'), { role: 'assistant', content: null, audio: { id: 'audio_expired' } }],
  refusals: [
    user('Hi'),
    { role: 'assistant', content: null, refusal: 'I cannot.' },
    user('Hi'),
    answer([text('Well, '), { type: 'refusal', refusal: 'no.' }]),
  ],
  'lists of parts where a text is usual': [
    { role: 'system', content: [text('Be '), text('kind.')] },
    user([text('a'), text('b')]),
    { role: 'assistant', content: [text('Let me '), text('see.')], tool_calls: [call('c1')] },
    result('c1', [text('a'), text('b')]),
    answer([text('x'), text('')]),
  ],
  'nothing but white space': [
    { role: 'system', content: '' },
    user(' \n'),
    answer('\t'),
    user(''),
    answer(''),
    user([text(' '), text('')]),
    { role: 'assistant', content: ' ', tool_calls: [call('c1')] },
    result('c1', ''),
    { role: 'assistant', content: null, tool_calls: [call('c2')] },
    result('c2', [text('')]),
    answer('Done. \n '),
  ],
  'an answer at the beginning': [answer('Welcome!'), answer('How can I help?')],
  'a call at the beginning': [{ role: 'assistant', content: null, tool_calls: [call('c1')] }, result('c1'), answer('Done.')],
  'neighbours of one role': [user('a'), user('b'), answer('c'), answer('d'), ...turn(call('c1')), ...turn(call('c2')).slice(1)],
  'ids that providers refuse': [
    ...turn(call('x'.repeat(300)), call('a b/c:d.e|f'), call('ünï\u{1f600}'), call(' ')),
    ...turn(call('functions.lookup:0'), call('toolu_01'), call('call_1|fc_2')),
  ],
  'ids that are used again': [...turn(call('c1'), call('c2')), ...turn(call('c1')), ...turn(call('c2'), call('c1'))],
  'names that providers refuse': turn(
    call('c1', 'x'.repeat(200)),
    call('c2', 'my tool!'),
    call('c3', '1st'),
    call('c4', ''),
    call('c5', 'a.b:c'),
    call('c6', 'gone'),
  ),
  'arguments of all kinds': turn(
    ...[
      '',
      ' ',
      '{"a":',
      '[1]',
      '"x"',
      'null',
      '7',
      '{"a":1}{"b":2}',
      '{"a":1,"a":2}',
      '{"__proto__":{"a":1}}',
      '{"n":1e999}',
    ].map((args, index) => call(`c${index}`, 'lookup', args)),
    call('deep', 'lookup', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`),
    call('half', 'lookup', `{"${HALF}":"${HALF}"}`),
    call('escaped', 'lookup', '{"\\ud83d":"\\u0000\\ud83d"}'),
  ),
  'half characters and NUL': [
    { role: 'system', content: `${HALF}${NUL}` },
    user(`${HALF}${NUL}`, { name: `n${HALF}` }),
    user([text(`${HALF}`), text(NUL)]),
    { role: 'assistant', content: `${HALF}`, tool_calls: [call(`id${HALF}`, `name${HALF}`), call(`id${NUL}`, `name${NUL}`)] },
    result(`id${HALF}`, `${HALF}`),
    result(`id${NUL}`, `${NUL}`),
    answer(`${NUL}${HALF}`),
  ],
  'results in another order': [
    user('Go'),
    { role: 'assistant', content: null, tool_calls: [call('c1'), call('c2'), call('c3')] },
    result('c3'),
    result('c1'),
    result('c2', 'x'.repeat(100_000)),
    answer('Done.'),
  ],
  'images of every type': [
    user(
      ['png', 'jpeg', 'gif', 'webp'].map((type, i) =>
        image(`data:image/${type};base64,${[png, '/9j/4AAQ', 'R0lGODlh', 'UklGRiQA'][i]}`),
      ),
    ),
    answer('I see.'),
  ],
  'images that are none': [
    user([
      image('data:image/png;base64,'),
      image('data:image/svg+xml;base64,PHN2Zy8+'),
      image('data:,x'),
      image('data:image/jpeg;base64,iVBORw0KGgo='),
    ]),
    answer('I see.'),
  ],
  'an image that cannot be processed': [
    user([text('See'), image(`data:image/png;base64,iVBORw0KGgoAYnJva2Vu`)]),
    answer('I see.'),
  ],
  'images that are gone': [
    user([
      image('https://gone.example/a.png'),
      image('https://gone.example/b'),
      image('http://127.0.0.1:9/c.png'),
      image('ftp://x.example/d.png'),
    ]),
    answer('I see.'),
    user([image('not a URL')]),
    answer('I see.'),
  ],
  'the same file twice': [
    user([text('Read'), { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'a.pdf' } }]),
    answer('I read.'),
    user([text('Read'), { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'a.pdf' } }]),
    answer('I read.'),
  ],
  'sound, video and files': [
    user([{ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }]),
    answer('I hear.'),
    user([
      { type: 'input_audio', input_audio: { data: '', format: 'opus' } },
      { type: 'video_url', video_url: { url: 'https://x.example/v.mp4' } },
    ]),
    answer('I see.'),
    user([{ type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'report_1 (final).v2.pdf' } }]),
    answer('I read.'),
    user([
      { type: 'file', file: { file_data: `data:application/pdf;base64,${pdf}`, filename: 'report_1 (final).v2.pdf' } },
      text('Again'),
    ]),
    user([{ type: 'file', file: { file_data: `data:text/plain;base64,${'eA=='}`, filename: "John's.txt" } }]),
    user([
      { type: 'file', file: { file_data: 'data:application/x-unknown;base64,eA==' } },
      { type: 'file', file: { filename: 'x' } },
    ]),
    answer('I read.'),
  ],
};
