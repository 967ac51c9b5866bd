import type { ModelEvent } from '@plugboard/kernel';
import { ModelServer, modelRequest } from '@plugboard/testing';
import t from 'tap';
import { CLOCK, callsOf, connect, open, PROVIDERS, readAll, readError, textOf } from './connection.js';
import { frame as bedrockFrame } from './servers/bedrock.js';
import { frame as geminiFrame } from './servers/google.js';
import { type Body, namedEvent as claudeFrame, type RawAnswer } from './servers/native-server.js';

const START: Body = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    usage: { input_tokens: 1, output_tokens: 1 },
  },
};
const STOP: readonly Body[] = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
];

function block(index: number, content_block: Body, ...deltas: readonly Body[]): readonly Body[] {
  return [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

function textBlock(index: number, text: string): readonly Body[] {
  return block(index, { type: 'text', text: '' }, { type: 'text_delta', text });
}

function claude(...events: readonly Body[]): RawAnswer {
  return { frames: events.map(claudeFrame) };
}

const OVERLOADED: Body = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
const pause = () => new Promise((resolve) => setTimeout(resolve, 20));

t.test('an error before anything was shown may be retried, and not after it (AI-2)', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  server.enqueue(claude(OVERLOADED), claude(START, OVERLOADED));
  t.match(await readError(connection), { retryable: true, message: /529: Overloaded/ });
  t.match(await readError(connection), { retryable: true, message: /529: Overloaded/ });
  server.enqueue({ frames: [...[START, ...textBlock(0, 'Hel')].map(claudeFrame), pause, claudeFrame(OVERLOADED)] });
  t.match(await readError(connection), { text: 'Hel', message: /Overloaded/ });
  t.equal(server.requests.length, 3, 'the provider retries nothing itself');
});

t.test('a server may name the stop sequence that ended the text', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  const delta = { stop_reason: 'stop_sequence', stop_sequence: '###' };
  const end = [{ type: 'message_delta', delta, usage: { output_tokens: 2 } }, { type: 'message_stop' }];
  server.enqueue(claude(START, ...textBlock(0, 'Hi'), ...end), claude(START, ...textBlock(0, 'Hi'), ...STOP));
  t.match((await readAll(connection)).at(-1), { type: 'end', reason: 'stop', stopSequence: '###' });
  t.equal('stopSequence' in ((await readAll(connection)).at(-1) ?? {}), false);
});

t.test('errors inside a stream with status 200 (AI-2, AI-11)', async (t) => {
  const aws = await open(t, 'bedrock');
  aws.server.enqueue(
    { frames: [bedrockFrame('throttlingException', { message: 'Too many tokens.' }, 'exception')] },
    { frames: [bedrockFrame('validationException', { message: 'Malformed input.' }, 'exception')] },
  );
  t.match(await readError(aws), { retryable: true, message: /Too many tokens/ });
  t.match(await readError(aws), { retryable: false, message: /Malformed input/ });
  const gemini = await open(t, 'google');
  const error = { code: 503, message: 'The model is overloaded.', status: 'UNAVAILABLE' };
  gemini.server.enqueue({ frames: [geminiFrame({ error })] });
  t.match(await readError(gemini), { retryable: true, message: /503: The model is overloaded/ });
});

t.test('bare JSON between events is no end of the answer (AI-3)', async (t) => {
  const { server, ...connection } = await open(t, 'google');
  const text = geminiFrame({ candidates: [{ content: { role: 'model', parts: [{ text: 'Hel' }] } }] });
  server.enqueue({ frames: [text, pause, '{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}\n'] });
  t.match(await readError(connection), { text: 'Hel', message: /cut off|overloaded/ });
});

t.test('finish reasons that are failures (AI-4)', async (t) => {
  const gemini = await open(t, 'google');
  gemini.server.enqueue({ finish: 'MALFORMED_FUNCTION_CALL' }, { finish: 'OTHER' });
  t.match(await readError(gemini), { retryable: true, message: /finish reason "error" \(MALFORMED_FUNCTION_CALL\)/ });
  t.match(await readError(gemini), { retryable: true, message: /finish reason "other" \(OTHER\)/ });
  const reasons = async (...scripts: readonly string[]) => {
    gemini.server.enqueue(...scripts.map((finish) => ({ text: ['a'], finish })));
    const ends: unknown[] = [];
    for (const _ of scripts) ends.push((await readAll(gemini)).at(-1));
    return ends.map((end) => {
      const { reason, rawReason } = end as Extract<ModelEvent, { type: 'end' }>;
      return `${reason} ${rawReason}`;
    });
  };
  const expected = ['length MAX_TOKENS', 'content_filter SAFETY', 'stop STOP'];
  t.same(await reasons('MAX_TOKENS', 'SAFETY', 'STOP'), expected, 'and the own words of the provider, for the log');
});

t.test('what the provider does not count is no number (AI-5)', async (t) => {
  const { server, ...connection } = await open(t, 'google');
  const chunk = { candidates: [{ content: { role: 'model', parts: [{ text: 'a' }] }, finishReason: 'STOP' }] };
  server.enqueue(
    { frames: [geminiFrame(chunk)] },
    { frames: [geminiFrame({ ...chunk, usageMetadata: { promptTokenCount: 3 } })] },
  );
  t.same(
    (await readAll(connection)).filter(({ type }) => type === 'usage'),
    [],
  );
  const [usage] = (await readAll(connection)).filter((event) => event.type === 'usage');
  t.same(usage?.usage, { promptTokens: 3, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 });
});

t.test('the forms of Anthropic (AI-15)', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  const citation = {
    type: 'char_location',
    cited_text: 'x',
    document_index: 0,
    document_title: null,
    start_char_index: 0,
    end_char_index: 1,
  };
  server.enqueue(
    claude(
      START,
      { type: 'ping' },
      START,
      ...block(
        0,
        { type: 'thinking', thinking: '' },
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'signature_delta', signature: 's' },
      ),
      ...block(1, { type: 'redacted_thinking', data: 'secret' }),
      ...block(2, { type: 'text', text: '' }, { type: 'citations_delta', citation }, { type: 'text_delta', text: 'Hello' }),
      ...block(3, { type: 'tool_use', id: 'a', name: 'clock', input: {} }),
      ...block(
        4,
        { type: 'tool_use', id: 'b', name: 'clock', input: {} },
        { type: 'input_json_delta', partial_json: '{"zone":' },
        { type: 'input_json_delta', partial_json: '"UTC"}' },
      ),
      ...STOP,
    ),
  );
  const events = await readAll(connection, { tools: [CLOCK] });
  t.equal(textOf(events), 'Hello');
  t.equal(textOf(events, 'reasoning'), 'Hm\n\n');
  t.same(
    callsOf(events).map((call) => call.arguments),
    ['{}', '{"zone":"UTC"}'],
  );
  t.match(events.at(-1), { reason: 'tool_calls' });
});

t.test('two messages spliced into one stream fail, unless the first had ended (AI-15)', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  const other = { ...START, message: { ...(START.message as object), id: 'msg_2' } };
  server.enqueue(
    claude(START, ...textBlock(0, 'Hello'), other, ...textBlock(0, 'you'), ...STOP),
    claude(START, ...textBlock(0, 'Hello'), ...STOP, other, ...textBlock(0, 'you'), ...STOP),
  );
  t.match(await readError(connection), { message: /more than one message; check baseUrl of models\.native/ });
  t.equal(textOf(await readAll(connection)), 'Hello');
});

t.test('a call with its id twice is two calls', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  server.enqueue({ calls: ['UTC', 'CET'].map((zone) => ({ id: 'same', name: 'clock', input: { zone } })) });
  const calls = callsOf(await readAll(connection, { tools: [CLOCK] }));
  t.equal(new Set(calls.map(({ id }) => id)).size, 2);
});

t.test('the arguments of streamed tools are shown while they come', async (t) => {
  const { server, connector } = await open(t, 'anthropic');
  server.enqueue({ calls: [{ id: 'a', name: 'clock', input: { zone: 'Europe/Berlin' } }] });
  const events: ModelEvent[] = [];
  const request = modelRequest('Time?', { tools: [CLOCK], streamedTools: ['clock'] });
  for await (const batch of connector.stream(request, new AbortController().signal)) events.push(...batch);
  const pieces = events.flatMap((event) => (event.type === 'tool-call-delta' ? [event] : []));
  t.ok(pieces.length > 2);
  t.equal(pieces.map((piece) => piece.arguments).join(''), callsOf(events)[0]?.arguments);
});

t.test('a redirect is not followed: it would take the key to another server', async (t) => {
  const { server, ...connection } = await open(t, 'anthropic');
  server.enqueue({ status: 307, body: '', headers: { location: `${server.url}/elsewhere` } });
  t.match(await readError(connection), {
    retryable: false,
    message: /307, a redirect: set baseUrl of models\.native to its target/,
  });
  t.equal(server.requests.length, 1);
});

t.test('a 400 that seems to be about the model may still be about the conversation (R-086)', async (t) => {
  const { server, ...connection } = await open(t, 'mistral');
  server.enqueue({ status: 400, body: { object: 'error', message: 'The call of the model turn was not found.', type: 'x' } });
  t.match(await readError(connection), {
    isRequestFault: true,
    retryable: false,
    message: /check that it has the model .*not found/,
  });
  server.enqueue({ status: 404, body: { object: 'error', message: 'No such route.', type: 'x' } });
  t.match(await readError(connection), { isRequestFault: false, retryable: false, message: /404; check that it has the model/ });
});

t.test('a server that cannot be reached', async (t) => {
  const connection = await connect(t, { ...PROVIDERS.anthropic.options, baseUrl: await ModelServer.refusedUrl() });
  t.match(await readError(connection), {
    retryable: true,
    message: /could not be reached \(ECONNREFUSED\); check baseUrl of models\.native/,
  });
});
