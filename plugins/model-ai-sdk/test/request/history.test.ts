import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { asMessages, CLOCK, open, PROVIDERS, type ProviderName, readAll, readError } from '../connection.js';
import { GOOGLE_MODEL } from '../servers/google.js';
import { listOf } from '../servers/native-server.js';

const NAMES = Object.keys(PROVIDERS) as ProviderName[];
const TIME: Message = { role: 'user', content: 'Time?' };
const call = (id: string, args = '{"zone":"UTC"}', name = 'clock') => ({
  id,
  type: 'function' as const,
  function: { name, arguments: args },
});

t.test('what a provider attached goes back also when the arguments were not JSON or the tool failed (AI-6)', async (t) => {
  const { server, ...connection } = await open(t, 'google');
  server.enqueue({ calls: [{ name: 'clock', input: { zone: 'UTC' } }] });
  const [answer, result] = asMessages(await readAll(connection, { messages: [TIME], tools: [CLOCK] }), [
    'Error: the tool failed.',
  ]);
  if (answer?.role !== 'assistant' || !result) throw new Error('there is no answer');
  const broken = answer.tool_calls?.map((one) =>
    one.type === 'function' ? { ...one, function: { ...one.function, arguments: '{"zo' } } : one,
  );
  await readAll(connection, {
    messages: [TIME, { ...answer, ...(broken ? { tool_calls: broken } : {}) }, result],
    tools: [CLOCK],
  });
  t.match(JSON.stringify(server.requests[1]?.body), /"args":\{\}.*thoughtSignature/);
  t.notMatch(JSON.stringify(server.requests[1]?.body), /skip_thought_signature_validator/);
});

t.test('thoughts between texts keep their order, and nothing is left out of the middle (AI-7)', async (t) => {
  for (const name of ['anthropic', 'bedrock', 'openai'] as const) {
    const { server, ...connection } = await open(t, name);
    server.enqueue({ thinking: ['one', 'two', 'three'], text: ['First.'], calls: [{ id: 'a', name: 'clock', input: {} }] });
    const answer = asMessages(await readAll(connection, { messages: [TIME], tools: [CLOCK] }), ['noon']);
    await readAll(connection, { messages: [TIME, ...answer], tools: [CLOCK] });
    const sent = JSON.stringify(server.requests[1]?.body);
    const places = ['"one"', '"two"', '"three"', 'First.', 'clock'].map((word) =>
      sent.indexOf(word, sent.indexOf('Time?') + (name === 'openai' ? 0 : 1)),
    );
    t.same(
      places,
      places.toSorted((a, b) => a - b),
      name,
    );
    t.same(server.refusals, []);
  }
});

t.test('another model, another key and another provider get no thoughts (AI-9)', async (t) => {
  for (const name of NAMES) {
    const first = await open(t, name);
    first.server.enqueue({
      thinking: ['Hm.'],
      text: ['Let me see.'],
      calls: [{ id: 'a', name: 'clock', input: { zone: 'UTC' } }],
    });
    const answer = asMessages(await readAll(first, { messages: [TIME], tools: [CLOCK] }), ['noon']);
    const key = `${PROVIDERS[name].options.apiKey.slice(0, 8)}-another-account`;
    const others = [
      await open(t, name, { apiKey: key }),
      ...(await Promise.all(NAMES.filter((one) => one !== name).map((one) => open(t, one)))),
    ];
    for (const { server, ...other } of others) {
      await readAll(other, { messages: [TIME, ...answer], tools: [CLOCK] });
      t.same(server.refusals, []);
      t.notMatch(JSON.stringify(server.requests[0]?.body), /Hm\./);
    }
  }
});

const ODD_HISTORIES: Readonly<Record<string, readonly Message[]>> = {
  'ids that providers refuse': [
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('functions.clock:0 ü')] },
    { role: 'tool', tool_call_id: 'functions.clock:0 ü', content: 'noon' },
  ],
  'names that do not begin with a letter': [
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('a', '{}', '1st'), call('b', '{}', '-'.repeat(64))] },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
    { role: 'tool', tool_call_id: 'b', content: 'ok' },
  ],
  'the same id in two turns': [
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'noon' },
    { role: 'assistant', content: 'Noon.' },
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'one' },
  ],
  'arguments that are not an object': [
    TIME,
    { role: 'assistant', content: '', tool_calls: [call('a', '[1]')] },
    { role: 'tool', tool_call_id: 'a', content: '' },
  ],
  'a call without its result': [
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
    { role: 'tool', tool_call_id: 'a', content: 'noon' },
    TIME,
  ],
  'a result without its call': [TIME, { role: 'tool', tool_call_id: 'a', content: 'noon' }],
  'blank texts': [
    { role: 'user', content: ' ' },
    { role: 'assistant', content: '' },
    { role: 'assistant', content: ' \n' },
    { role: 'user', content: [{ type: 'text', text: '' }] },
  ],
  'a beginning without the user': [{ role: 'assistant', content: 'Hello' }, TIME],
  'an end with the assistant': [TIME, { role: 'assistant', content: 'It is ' }],
  'neighbours of the same role': [
    TIME,
    TIME,
    { role: 'assistant', content: 'a' },
    { role: 'assistant', content: 'b', tool_calls: [call('c')] },
    { role: 'tool', tool_call_id: 'c', content: 'd' },
  ],
  'system messages anywhere': [
    { role: 'system', content: 'a' },
    { role: 'system', content: 'b' },
    TIME,
    { role: 'system', content: 'c' },
    { role: 'assistant', content: 'd' },
    { role: 'system', content: 'e' },
  ],
  'only a system message': [{ role: 'system', content: 'a' }],
  'half a surrogate pair': [
    { role: 'user', content: 'cut \ud83d' },
    { role: 'assistant', content: 'cut \ud83d', tool_calls: [call('a', '{"zone":"\\ud83d"}')] },
    { role: 'tool', tool_call_id: 'a', content: '\ude00' },
  ],
  'refusals, old calls and custom tools': [
    TIME,
    { role: 'assistant', content: null, refusal: 'No.' },
    { role: 'function', name: 'old', content: 'result' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'clock', input: 'free text' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
  ],
  'images and files of the past that cannot be sent': [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'data:image/bmp;base64,Qk0=' } },
        { type: 'image_url', image_url: { url: 'http://127.0.0.1:1/gone.png' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'file', file: { filename: 'a.bin', file_data: 'data:application/x-unknown;base64,AAAA' } },
        { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
      ],
    },
    { role: 'assistant', content: 'I see.' },
    TIME,
  ],
};

t.test('histories that the protocol allows and the providers refuse', async (t) => {
  for (const name of NAMES) {
    const { server, ...connection } = await open(t, name);
    for (const [title, messages] of Object.entries(ODD_HISTORIES)) {
      await t.resolves(readAll(connection, { messages, tools: [CLOCK] }), `${name}: ${title}: ${server.refusals.at(-1)}`);
    }
    t.same(server.refusals, [], name);
  }
});

t.test('new images and files that cannot be sent are errors that name them (AI-13)', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  const refusal = async (part: object) => readError(connection, { messages: [{ role: 'user', content: [part] } as Message] });
  const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
  t.match(await refusal({ type: 'image_url', image_url: { url: 'data:image/png;base64,Qk0=' } }), {
    isRequestFault: true,
    message: /an image cannot be sent: its data is not a PNG/,
  });
  t.match(await refusal(audio), { isRequestFault: true, message: /an audio part cannot be sent to this model/ });
  t.match(await refusal({ type: 'video_url', video_url: { url: 'https://x/a.mp4' } }), {
    message: /a video cannot be sent to this model/,
  });
  t.equal(server.requests.length, 0);
});

t.test('thoughts that the provider stored and lost are a fault of the request, so that they are left out', async (t) => {
  const { server, ...connection } = await open(t, 'openai', { providerOptions: { openai: { store: true } } });
  server.enqueue({ thinking: ['Hm.'], text: ['Noon.'] });
  const answer = asMessages(await readAll(connection, { messages: [TIME] }));
  const lost = await readError(connection, { messages: [TIME, ...answer, TIME] });
  t.match(lost, { isRequestFault: true, message: /no longer has a part of the conversation: Item with id/ });
});

t.test('results are sent as text where the model may call no tools, and the provider refuses calls then', async (t) => {
  const { server, ...connection } = await open(t, 'bedrock');
  server.enqueue({ thinking: ['Hm.'], text: ['Let me see.'], calls: [{ id: 'a', name: 'clock', input: {} }] });
  const own = asMessages(await readAll(connection, { messages: [TIME], tools: [CLOCK] }), ['noon']);
  const silent: Message[] = [
    { role: 'assistant', content: null, tool_calls: [call('b')] },
    { role: 'tool', tool_call_id: 'b', content: 'one' },
  ];
  for (const more of [{}, { tools: [CLOCK], params: { tool_choice: 'none' } }]) {
    await readAll(connection, { messages: [TIME, ...own, ...silent], ...more });
    t.same(server.refusals, []);
    t.match(server.requests.at(-1)?.body.messages, [
      { role: 'user' },
      { role: 'assistant', content: [{ text: 'Let me see.' }] },
      { role: 'user', content: [{ text: 'Result of a tool: noon' }, { text: 'Result of a tool: one' }] },
    ]);
  }
});

t.test('a schema that is a combination becomes one object, and each has its properties', async (t) => {
  const one = { properties: { zone: { type: 'string' } }, required: ['zone'] };
  const two = { properties: { city: { type: 'string' } }, required: ['city'] };
  for (const name of NAMES) {
    const { server, ...connection } = await open(t, name);
    const schemas = [{ anyOf: [one, two] }, { type: 'object', oneOf: [one], allOf: [two, true] }, { type: 'object' }];
    const tools = schemas.map((inputSchema, index) => ({ ...CLOCK, name: `clock_${index}`, inputSchema }));
    await t.resolves(readAll(connection, { messages: [TIME], tools }), `${name}: ${server.refusals.at(-1)}`);
    const sent = JSON.stringify(server.requests[0]?.body);
    t.equal(sent.match(/"properties":\{"zone":\{"type":"string"\},"city":\{"type":"string"\}\}/g)?.length, 2, name);
    t.equal(sent.match(/"required":\["city"\]/g)?.length, 1, name);
  }
});

t.test('parallel calls of which only the first is signed, and calls of others (AI-12)', async (t) => {
  const { server, ...connection } = await open(t, 'google');
  server.enqueue({ calls: ['UTC', 'CET'].map((zone) => ({ name: 'clock', input: { zone } })) });
  const own = asMessages(await readAll(connection, { messages: [TIME], tools: [CLOCK] }), ['12', '13']);
  await readAll(connection, { messages: [TIME, ...own], tools: [CLOCK] });
  t.equal(server.refusals.length, 0);
  t.notMatch(JSON.stringify(server.requests[1]?.body), /skip_thought_signature_validator/);
  const foreign: Message[] = [
    TIME,
    { role: 'assistant', content: null, tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'x' },
  ];
  await readAll(connection, { messages: foreign, tools: [CLOCK] });
  t.match(JSON.stringify(server.requests[2]?.body), /skip_thought_signature_validator/);
  t.match(server.requests[0]?.path, GOOGLE_MODEL);
});

t.test('schemas with local references and enums of numbers are taken by Gemini (AI-12)', async (t) => {
  const { server, ...connection } = await open(t, 'google');
  const inputSchema = {
    $defs: { zone: { type: 'string' } },
    type: 'object',
    properties: { zone: { $ref: '#/$defs/zone' }, hours: { type: 'integer', enum: [12, 24] } },
  };
  await readAll(connection, { messages: [TIME], tools: [{ ...CLOCK, inputSchema }] });
  t.same(server.refusals, []);
  const [tools] = listOf(server.requests[0]?.body.tools);
  t.match(tools, { functionDeclarations: [{ parametersJsonSchema: inputSchema }] });
});

/** Claude that must think before it calls tools, natively and on Bedrock. */
const BUDGETS = {
  anthropic: {
    model: 'claude-sonnet-4-5',
    providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
  },
  bedrock: { providerOptions: { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: 1024 } } } },
} as const;

t.test('a tool step that another connection or the caller began is continued without thinking', async (t) => {
  const foreign: Message[] = [
    TIME,
    { role: 'assistant', content: 'Let me see.', tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'a', content: 'noon' },
  ];
  for (const name of ['anthropic', 'bedrock'] as const) {
    const { server, ...connection } = await open(t, name, BUDGETS[name]);
    const thinkingIn = () => JSON.stringify(server.requests.at(-1)?.body).includes('"type":"enabled"');
    await readAll(connection, { messages: foreign, tools: [CLOCK] });
    t.notOk(thinkingIn(), name);
    await readAll(connection, { messages: [...foreign, TIME], tools: [CLOCK] });
    t.notOk(thinkingIn(), 'nor if a message of the user follows the results');
    await readAll(connection, { messages: [...foreign, { role: 'assistant', content: 'Noon.' }, TIME], tools: [CLOCK] });
    t.ok(thinkingIn(), 'the next turn thinks again');
    server.enqueue({ thinking: ['Hm.'], calls: [{ id: 'a', name: 'clock', input: { zone: 'UTC' } }] });
    const own = asMessages(await readAll(connection, { messages: [TIME], tools: [CLOCK] }), ['noon']);
    await readAll(connection, { messages: [TIME, ...own], tools: [CLOCK] });
    t.ok(thinkingIn(), 'its own step keeps its thought');
    t.match(JSON.stringify(server.requests.at(-1)?.body), /Hm\./);
    t.same(server.refusals, [], name);
  }
  const { server, ...effort } = await open(t, 'anthropic', { model: 'claude-sonnet-4-5', providerOptions: {} });
  await readAll(effort, { messages: foreign, tools: [CLOCK], params: { reasoning_effort: 'high' } });
  t.same(server.refusals, []);
});
