import type { Message } from '@plugboard/kernel';

export const UNUSUAL_TEXTS = [
  '',
  ' ',
  '\u0000 and \u0001',
  '"quotes" and \\ and \'',
  '\r\n\u2028\u2029',
  '🧮 é é ẞ 漢字 \u202E',
  'a lone half: \ud83d',
  "'); DROP TABLE session; --",
];

export const UNUSUAL_KEYS = [
  'a',
  'A',
  'a ',
  ' a',
  '../a',
  './a',
  'a/',
  '/etc/passwd',
  'C:\\a',
  'a.json',
  "a'; DROP TABLE session; --",
  'a"',
  '%',
  '_',
  '*',
  '$1',
  '\u00e9',
  'e\u0301',
  'ẞ',
  'ß',
  '🧮',
  '\u202ea',
  '__proto__',
  'constructor',
  'null',
  '0',
  '00',
  'x'.repeat(512),
  `${'x'.repeat(511)}y`,
];

/** Values that break statements built by concatenation. */
export const INJECTIONS = [
  "' OR '1'='1",
  "x' UNION SELECT * FROM session --",
  '"; DELETE FROM message; --',
  '"] OR 1 --',
  '["helper"]',
  '[]',
  '{"$ne":null}',
  'key = key',
  '?',
  ':project',
  'NULL',
  '1 OR 1',
  '\\',
  '%%',
  'a_c',
];

/** Every kind of message in message.ts, with every optional field once. */
export const EVERY_FORM: readonly Message[] = [
  { role: 'system', content: 'You are a helpful assistant.', name: 'operator' },
  { role: 'system', content: [{ type: 'text', text: 'in parts' }] },
  { role: 'user', content: 'plain', name: 'anna' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
      { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
    ],
  },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{ "timeZone":"UTC" }' } },
      { id: 'call_2', type: 'custom', custom: { name: 'grep', input: 'a.*b' } },
      {
        id: 'call_3',
        type: 'function',
        function: { name: 'clock', arguments: '{}' },
        extra: { connection: 'gemini', data: { signature: 'AY8=', nested: [{ n: 1 }, null] } },
      },
    ],
    extra: { connection: 'gemini', data: 'opaque' },
  },
  { role: 'tool', content: 'noon', tool_call_id: 'call_1' },
  { role: 'tool', content: [{ type: 'text', text: 'nothing found' }], tool_call_id: 'call_2' },
  { role: 'tool', content: 'noon', tool_call_id: 'call_3' },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'It is ' },
      { type: 'refusal', refusal: 'not for me to say' },
    ],
    name: 'helper',
  },
  { role: 'assistant', content: null, refusal: 'I cannot help with that.' },
  { role: 'assistant', content: null, audio: { id: 'audio_1' } },
  { role: 'assistant', content: null, function_call: { name: 'old', arguments: '{}' } },
  { role: 'function', content: null, name: 'old' },
  { role: 'function', content: 'ok', name: 'old' },
];
