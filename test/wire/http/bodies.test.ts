import t from 'tap';
import { RawClient } from '../../../plugins/transport-http/test/support/raw-client.js';
import { answerOf, errorOf, saying, TestServer } from '../../support/test-server.js';

const server = await TestServer.start(t);

const user = (content: unknown) => ({ role: 'user', content });
const messages = [user('Hi')];
const model = 'assistant';
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

const UNREADABLE = { message: /^We could not parse the JSON body of your request\./, param: null, code: null };
const NO_MODEL = { message: 'you must provide a model parameter', param: null, code: null };
const at = (param: string, code: string | null) => ({ param, code });

/** A statement, and bodies that break it: as they are sent, and what is said of them. */
const faults: readonly [statement: string, ...cases: (readonly [body: unknown, error: object])[]][] = [
  ['C-020 malformed JSON', ['{', UNREADABLE], ["{'model':1}", UNREADABLE], ['{"model":"assistant"}}', UNREADABLE]],
  [
    'C-021 JSON that is not an object, and an empty body',
    ...['[]', '"x"', '42', 'null', 'true', '', '\n'].map((body) => [body, UNREADABLE] as const),
    [{ model: 7, messages }, UNREADABLE],
  ],
  [
    'C-026 a model that is missing, empty or null',
    [{ messages }, NO_MODEL],
    [{ model: '', messages }, NO_MODEL],
    [{ model: null, messages }, NO_MODEL],
  ],
  ['C-027 a missing model comes before any other fault', [{ messages: 7, n: 0, temperature: 'hot' }, NO_MODEL], [{}, NO_MODEL]],
  [
    'C-028 missing messages',
    [{ model }, { message: "Missing required parameter: 'messages'.", ...at('messages', 'missing_required_parameter') }],
    [{ model, messages: null }, at('messages', 'missing_required_parameter')],
  ],
  [
    'C-029 empty messages',
    [
      { model, messages: [] },
      {
        message: "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ...at('messages', 'empty_array'),
      },
    ],
  ],
  [
    'C-030 messages that are not an array',
    [{ model, messages: 'hi' }, at('messages', 'invalid_type')],
    [{ model, messages: {} }, at('messages', 'invalid_type')],
  ],
  [
    'C-031 messages of the wrong shape, named by their place',
    [{ model, messages: [123] }, at('messages[0]', 'invalid_type')],
    [{ model, messages: [null] }, at('messages[0]', 'invalid_type')],
    [{ model, messages: ['Hi'] }, at('messages[0]', 'invalid_type')],
    [{ model, messages: [{}] }, at('messages[0].role', 'missing_required_parameter')],
    [{ model, messages: [{ role: 123 }] }, at('messages[0].role', 'invalid_type')],
    [{ model, messages: [...messages, user(7)] }, at('messages[1].content', 'invalid_type')],
  ],
  [
    'C-032 an unknown role',
    [
      { model, messages: [...messages, { role: 'bogus', content: 'x' }] },
      {
        message:
          "Invalid value: 'bogus'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
        ...at('messages[1].role', 'invalid_value'),
      },
    ],
  ],
  [
    'C-033 content that is missing or null where it must not be',
    ...['user', 'system', 'developer', 'assistant'].flatMap((role) => [
      [
        { model, messages: [{ role }] },
        { param: 'messages.[0].content', code: null },
      ] as const,
      [
        { model, messages: [{ role, content: null }] },
        { param: 'messages.[0].content', code: null },
      ] as const,
    ]),
    [
      { model, messages: [{ role: 'tool', tool_call_id: 'c', content: null }] },
      { param: 'messages.[0].content', code: null },
    ],
  ],
  [
    'C-035 a content part without a type, or of an unknown one',
    [{ model, messages: [user([{ text: 'x' }])] }, at('messages[0].content[0].type', 'missing_required_parameter')],
    [
      { model, messages: [...messages, user([{ type: 'text', text: 'x' }, { type: 'smell' }])] },
      at('messages[1].content[1].type', 'invalid_value'),
    ],
    [{ model, messages: [user([{ type: 7 }])] }, at('messages[0].content[0].type', 'invalid_type')],
  ],
  [
    'C-036 fields of the wrong type',
    [
      saying('Hi', { stream: 'yes' }),
      { message: "Invalid type for 'stream': expected a boolean, but got a string instead.", ...at('stream', 'invalid_type') },
    ],
    [saying('Hi', { temperature: 'hot' }), at('temperature', 'invalid_type')],
    [saying('Hi', { n: '2' }), at('n', 'invalid_type')],
    [saying('Hi', { user: {} }), at('user', 'invalid_type')],
    [saying('Hi', { session_id: 7 }), at('session_id', 'invalid_type')],
  ],
  [
    'C-037 numbers out of range',
    [
      saying('Hi', { temperature: 3 }),
      {
        message: "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.",
        ...at('temperature', 'decimal_above_max_value'),
      },
    ],
    [saying('Hi', { top_p: 2 }), at('top_p', 'decimal_above_max_value')],
    [saying('Hi', { presence_penalty: 3 }), at('presence_penalty', 'decimal_above_max_value')],
    [saying('Hi', { presence_penalty: -3 }), at('presence_penalty', 'decimal_below_min_value')],
    [saying('Hi', { frequency_penalty: 3 }), at('frequency_penalty', 'decimal_above_max_value')],
    [saying('Hi', { frequency_penalty: -3 }), at('frequency_penalty', 'decimal_below_min_value')],
    [saying('Hi', { n: 0 }), at('n', 'integer_below_min_value')],
    [saying('Hi', { top_logprobs: 21 }), at('top_logprobs', 'integer_above_max_value')],
    [saying('Hi', { max_completion_tokens: 0 }), at('max_completion_tokens', 'integer_below_min_value')],
  ],
  [
    'C-173 a logit bias out of its range',
    [
      saying('Hi', { logit_bias: { 50256: 10000 } }),
      { message: 'Logit bias value 10000.0 is invalid or outside of range [-100, 100]', param: 'logit_bias', code: null },
    ],
    [
      saying('Hi', { logit_bias: { 1: -100.5 } }),
      { message: 'Logit bias value -100.5 is invalid or outside of range [-100, 100]' },
    ],
  ],
  [
    'C-174 a metadata name that is too long',
    [
      saying('Hi', { metadata: { [`123${'x'.repeat(59)}345`]: 'v' } }),
      {
        message:
          "Invalid property name in 'metadata': '123...345' is too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
        ...at(`metadata.123${'x'.repeat(59)}345`, 'property_name_above_max_length'),
      },
    ],
  ],
  [
    'C-038 more than four stop sequences',
    [saying('Hi', { stop: ['a', 'b', 'c', 'd', 'e'] }), at('stop', 'array_above_max_length')],
  ],
  [
    'C-039 metadata over its limits',
    [saying('Hi', { metadata: keys(17) }), at('metadata', 'object_above_max_properties')],
    [saying('Hi', { metadata: { ['k'.repeat(65)]: 'v' } }), at(`metadata.${'k'.repeat(65)}`, 'property_name_above_max_length')],
    [
      saying('Hi', { metadata: { k: 'v'.repeat(600) } }),
      {
        message:
          "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but got a string with length 600 instead.",
        ...at('metadata.k', 'string_above_max_length'),
      },
    ],
    [saying('Hi', { metadata: { k: 7 } }), at('metadata.k', 'invalid_type')],
  ],
  [
    'C-040 an invalid response format',
    [saying('Hi', { response_format: { type: 'bogus' } }), at('response_format.type', 'invalid_value')],
    [saying('Hi', { response_format: { type: 'json_schema' } }), at('response_format.json_schema', 'missing_required_parameter')],
  ],
  [
    'C-041 stream options without a stream',
    [saying('Hi', { stream_options: { include_usage: true } }), at('stream_options', null)],
    [saying('Hi', { stream: false, stream_options: {} }), at('stream_options', null)],
  ],
  ['C-042 more than one choice', [saying('Hi', { n: 2 }), at('n', 'unsupported_value')]],
];

for (const [statement, ...cases] of faults) {
  t.test(`${statement}: 400 with all four keys, streamed or not`, async (t) => {
    for (const [body, expected] of cases) {
      const asked = typeof body === 'object' ? { session_id: 'untouched', ...body } : body;
      const streams = typeof body === 'object' && body !== null && !('stream' in body) && !('stream_options' in body);
      for (const sent of streams ? [asked, { ...(asked as object), stream: true }] : [asked]) {
        const reply = await server.chat(sent);
        t.equal(reply.status, 400, JSON.stringify(body));
        t.equal(reply.headers.get('content-type'), 'application/json; charset=utf-8');
        t.strictSame(Object.keys(errorOf(reply)), ['message', 'type', 'param', 'code']);
        t.match(errorOf(reply), { message: /\S/, type: 'invalid_request_error', ...expected });
      }
    }
  });
}

t.test('C-022 C-024 another content type, charset or content encoding: 400, and the body is not executed', async (t) => {
  const body = JSON.stringify(saying('Hi', { session_id: 'untouched' }));
  const wrong: readonly Readonly<Record<string, string>>[] = [
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-type': '' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/json; charset=nonsense' },
    { 'content-encoding': 'gzip' },
    { 'content-encoding': 'br' },
    { 'content-encoding': 'nonsense' },
  ];
  for (const headers of wrong) {
    const reply = await server.chat(body, headers);
    t.equal(reply.status, 400, JSON.stringify(headers));
    t.match(errorOf(reply), { type: 'invalid_request_error', param: null, code: null });
  }
});

t.test('C-045 none of these requests called a model or created a session', async (t) => {
  t.equal(server.models.requests.length, 0);
  t.equal(answerOf(await server.chat(saying('First', { session_id: 'untouched' }))), 'First');
  t.equal(server.asked.messages.filter(({ role }) => role !== 'system').length, 1);
});

t.test('C-021 a request that announces no body is refused like one with an empty body', async (t) => {
  const raw = await RawClient.open(server.port);
  raw.send(
    'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n',
  );
  t.match(await raw.ended(), /^HTTP\/1\.1 400 [\s\S]*We could not parse the JSON body of your request/);
});

t.test('C-023 the charset UTF-8 and a byte order mark are accepted', async (t) => {
  const body = JSON.stringify(saying('é𝄞'));
  for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])
    t.equal(answerOf(await server.chat(body, { 'content-type': type })), 'é𝄞');
  t.equal(answerOf(await server.chat(`\ufeff${body}`)), 'é𝄞');
});

t.test('C-034 empty content is accepted', async (t) => {
  for (const content of ['', []]) t.equal((await server.chat({ model, messages: [user(content)] })).status, 200);
});

t.test('C-042 C-043 C-044 one choice, nulls and unknown fields are accepted', async (t) => {
  const optional = [
    ...['stream', 'stream_options', 'user', 'session_id', 'max_completion_tokens', 'max_tokens', 'temperature', 'top_p'],
    ...['frequency_penalty', 'presence_penalty', 'stop', 'seed', 'n', 'logprobs', 'top_logprobs', 'logit_bias'],
    ...['response_format', 'tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'reasoning_effort'],
    ...['verbosity', 'modalities', 'audio', 'prediction', 'web_search_options', 'service_tier', 'store', 'metadata'],
    ...['safety_identifier', 'prompt_cache_key', 'prompt_cache_retention', 'prompt_cache_options', 'moderation'],
  ];
  const nulls = await server.chat(saying('Hi', Object.fromEntries(optional.map((name) => [name, null]))));
  t.equal(answerOf(nulls), 'Hi');
  t.notOk(nulls.headers.has('x-ignored-params'), 'null is as good as absent');
  t.equal(answerOf(await server.chat(saying('Hi', { n: 1 }))), 'Hi');
  const extras = await server.chat(saying('Hi', { chat_id: '1', top_k: 40, reasoning: {}, provider: [], 'a b': 1 }));
  t.equal(answerOf(extras), 'Hi');
  t.equal(extras.headers.get('x-ignored-params'), 'chat_id, top_k, reasoning, provider, ?', 'and are named');
});

t.test('C-172 an empty list of stop sequences means none, and is not sent to the model', async (t) => {
  const reply = await server.chat(saying('Hi', { stop: [] }));
  t.equal(answerOf(reply), 'Hi');
  t.notOk(reply.headers.has('x-ignored-params'));
  t.notOk('stop' in server.asked);
});

t.test('C-025 a body at the size limit is accepted, and a larger one is refused', async (t) => {
  const limit = 20 * 2 ** 20;
  const half = 'x'.repeat(9 * 2 ** 20);
  server.models.enqueue({ text: 'That was long.' });
  const body = JSON.stringify({ model, messages: [user(half), user(half), user('')] });
  const padded = body + ' '.repeat(limit - body.length);
  t.equal(answerOf(await server.chat(padded)), 'That was long.');
  const reply = await server.chat(`${padded} `);
  t.equal(reply.status, 413);
  t.match(errorOf(reply), { type: 'invalid_request_error', param: null, code: 'request_too_large' });
  t.equal((await server.get('/health')).status, 200);
});
