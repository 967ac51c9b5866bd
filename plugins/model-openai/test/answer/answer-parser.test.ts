import type { ModelEvent } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { AnswerParser } from '../../src/answer/answer-parser.js';
import { Failures } from '../../src/failure/failures.js';
import { Redactor } from '../../src/failure/redactor.js';

const PLAIN = { tools: [], fingerprint: 'm', keepsReasoning: 'never', splitThinkTags: false } as const;
const failures = new Failures(new Redactor([]), new ManualClock(), { idleTimeout: '1s', connectTimeout: '1s' });
const FINISH = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

/** The events of a stream of these chunks, the end included. */
function parse(...chunks: readonly unknown[]): readonly ModelEvent[] {
  const answer = new AnswerParser({ failures, ids: new SequentialIds(), ...PLAIN });
  const events: ModelEvent[] = [];
  for (const chunk of chunks) answer.add(chunk, events);
  answer.end('cut', events);
  return events;
}

function delta(delta: unknown, rest: object = {}) {
  return { choices: [{ index: 0, delta, ...rest }] };
}

function reasons(...chunks: readonly unknown[]): readonly string[] {
  return parse(...chunks).map((event) => (event.type === 'end' ? event.reason : event.type));
}

const END: ModelEvent = { type: 'end', reason: 'stop' };

t.test('empty and missing members produce no event', async (t) => {
  const nothing = [
    {},
    { choices: [] },
    { choices: null, usage: null, error: null },
    { choices: [null], error: '' },
    { choices: [{}] },
    delta(null),
    delta({}),
    delta({ role: 'assistant', content: '', reasoning: '', reasoning_content: null, refusal: null, tool_calls: null }),
    delta({ content: 7, tool_calls: [] }, { finish_reason: '' }),
    delta({ tool_calls: ['no', null] }),
  ];
  t.strictSame(parse(...nothing, FINISH), [END]);
});

t.test('ignores chunks of other choices than the first', async (t) => {
  const other = { choices: [{ index: 1, delta: { content: 'no' }, finish_reason: 'length' }] };
  t.strictSame(parse(other, FINISH), [END]);
});

t.test('reads reasoning under both names, once', async (t) => {
  const chunks = [
    delta({ reasoning: 'a' }),
    delta({ reasoning_content: 'b' }),
    delta({ reasoning: 'c', reasoning_content: 'c' }),
  ];
  const thoughts = parse(...chunks, FINISH).slice(0, -1);
  t.strictSame(
    thoughts,
    [...'abc'].map((text) => ({ type: 'reasoning', text })),
  );
});

t.test('reads content in parts', async (t) => {
  const content = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }, { type: 'reference' }] },
    { type: 'text', text: 'Yes' },
    { type: 'text', text: '' },
    { type: 'image' },
    { type: 'thinking' },
    'more',
    7,
    { type: 'reasoning', text: 'So.' },
    { type: 'refusal', refusal: 'No.' },
  ];
  t.strictSame(parse(delta({ content }), FINISH), [
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'Yes' },
    { type: 'text', text: 'more' },
    { type: 'reasoning', text: 'So.' },
    { type: 'text', text: 'No.', isRefusal: true },
    END,
  ]);
});

t.test('the last usage counts, in any chunk', async (t) => {
  const usage = (tokens: number) => ({
    prompt_tokens: tokens,
    completion_tokens: 2,
    completion_tokens_details: { reasoning_tokens: 1 },
  });
  const [event] = parse(
    { ...delta({}), usage: usage(1) },
    FINISH,
    { choices: [], usage: usage(5) },
    { choices: [], usage: null },
  );
  t.strictSame(event, {
    type: 'usage',
    usage: { promptTokens: 5, completionTokens: 2, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 1 },
  });
  const [odd] = parse(FINISH, {
    usage: { prompt_tokens: '5', completion_tokens: -1, prompt_tokens_details: { cached_tokens: 0.5 } },
  });
  t.strictSame(odd, {
    type: 'usage',
    usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  });
});

t.test('maps finish reasons to the protocol', async (t) => {
  const reason = (finish_reason: string) => reasons(delta({}, { finish_reason })).at(-1);
  for (const known of ['stop', 'length', 'content_filter']) t.equal(reason(known), known);
  t.equal(reason('max_tokens'), 'length');
  t.equal(reason('model_length'), 'length');
  const words = {
    stop: 'STOP end_turn eos complete stop-sequence',
    length: 'MAX_TOKENS FinishReason.MAX_TOKENS max_output_tokens model_context_window_exceeded',
    content_filter: 'SAFETY sensitive RECITATION prohibited_content guardrail_intervened',
  };
  for (const [known, list] of Object.entries(words)) for (const word of list.split(' ')) t.equal(reason(word), known, word);
  const end = parse(delta({ content: 'a' }, { finish_reason: 'SAFETY' })).at(-1);
  t.match(end, { reason: 'content_filter', rawReason: 'SAFETY' }, 'the own word of the server, for the log (AI-4)');
});

t.test('tool calls override the finish reason', async (t) => {
  const call = delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] });
  const finish = (finish_reason: string) => delta({}, { finish_reason });
  t.strictSame(reasons(call, finish('stop')), ['tool-call', 'tool_calls']);
  t.strictSame(reasons(call, finish('function_call')), ['tool-call', 'tool_calls']);
  t.strictSame(reasons(call, finish('length')), ['tool-call', 'length']);
  t.strictSame(reasons(delta({ content: 'a' }), finish('tool_calls')), ['text', 'stop']);
  t.throws(() => parse(finish('tool_calls')), {
    message: 'the model server announced tool calls and sent none.',
    retryable: true,
  });
});

t.test('an incomplete call is dropped if the length limit cut the answer', async (t) => {
  const half = delta({ tool_calls: [{ index: 0, id: 'a', function: { arguments: '' } }] });
  t.strictSame(reasons(half, delta({}, { finish_reason: 'length' })), ['length']);
  t.throws(() => parse(half, FINISH), { name: 'ModelError', message: /a tool call without a name/ });
});

t.test('an answer in one JSON object needs no finish reason', async (t) => {
  const answer = new AnswerParser({ failures, ids: new SequentialIds(), ...PLAIN });
  const events: ModelEvent[] = [];
  answer.add(
    { choices: [{ message: { content: 'a', tool_calls: [{ function: { name: 'f', arguments: {} } }] }, finish_reason: null }] },
    events,
  );
  answer.end('body', events);
  t.strictSame(events, [
    { type: 'text', text: 'a' },
    {
      type: 'tool-call',
      id: 'call_000000000000000000000001',
      name: 'f',
      arguments: '{}',
      extra: { of: 'm', id: 'call_000000000000000000000001' },
    },
    { type: 'end', reason: 'tool_calls' },
  ]);
});

t.test('recognizes a chunk that carries nothing but text', async (t) => {
  const answer = new AnswerParser({ failures, ids: new SequentialIds(), ...PLAIN });
  const plain = (chunk: unknown) => answer.add(chunk, []);
  t.equal(plain(delta({ role: 'assistant', content: 'a', tool_calls: [], refusal: null })), 'a');
  t.equal(plain(delta({ content: '' })), undefined);
  for (const more of [{ reasoning: 'x' }, { refusal: 'x' }, { tool_calls: [{}] }])
    t.equal(plain(delta({ content: 'a', ...more })), undefined);
  t.equal(plain(delta({ content: 'a' }, { finish_reason: 'stop' })), undefined);
  t.equal(plain({ ...delta({ content: 'a' }), usage: {} }), undefined);
  t.equal(plain(delta({ content: [{ type: 'text', text: 'a' }] })), undefined);
});

t.test('a finish reason that means failure is an error, and worth a retry', async (t) => {
  const text = delta({ content: 'half' });
  for (const word of ['abort', 'network_error', 'insufficient_system_resource', 'MALFORMED_FUNCTION_CALL', 'error'])
    t.throws(() => parse(text, delta({}, { finish_reason: word })), {
      name: 'ModelError',
      message: `the model server ended the answer with finish_reason "${word}".`,
      retryable: true,
    });
});

t.test('an unknown finish reason is accepted after text only', async (t) => {
  const end = delta({}, { finish_reason: 'constructor' });
  t.strictSame(reasons(delta({ content: 'a' }), end), ['text', 'stop']);
  t.throws(() => parse(delta({ reasoning: 'hm' }), end), { message: /finish_reason "constructor"/, retryable: true });
});

t.test('a server may name the stop sequence that ended the text', async (t) => {
  const said = delta({ content: 'a' });
  const end = (fields: object) => parse(said, delta({}, { finish_reason: 'stop', ...fields })).at(-1);
  t.strictSame(end({ stop_reason: '###' }), { type: 'end', reason: 'stop', stopSequence: '###' });
  t.strictSame(end({ matched_stop: '###' }), { type: 'end', reason: 'stop', stopSequence: '###' });
  for (const stop_reason of [null, 2, '']) t.strictSame(end({ stop_reason }), { type: 'end', reason: 'stop' });
  t.strictSame(end({ finish_reason: 'length', stop_reason: '###' }), { type: 'end', reason: 'length' });
});

t.test('native_finish_reason decides if it says more', async (t) => {
  const said = delta({ content: 'a' });
  const finish = (finish_reason: unknown, native_finish_reason: unknown) => delta({}, { finish_reason, native_finish_reason });
  const reason = (word: unknown, native: unknown) => reasons(said, finish(word, native)).at(-1);
  t.equal(reason('stop', 'STOP'), 'stop');
  t.equal(reason('stop', 'SAFETY'), 'content_filter');
  t.equal(reason(null, 'MAX_TOKENS'), 'length');
  t.equal(reason('weird', 'end_turn'), 'stop');
  t.equal(reason('length', 'stop'), 'length');
  t.equal(reason('stop', 'weird'), 'stop');
  for (const [word, native] of [
    ['stop', 'network_error'],
    ['tool_calls', 'MALFORMED_FUNCTION_CALL'],
    ['error', 'stop'],
  ] as const)
    t.throws(() => parse(said, finish(word, native)), { message: /ended the answer with finish_reason/, retryable: true });
});

t.test('[DONE] after text completes an answer without a finish reason, and only then', async (t) => {
  const end = (ending: 'done' | 'cut', chunks: readonly unknown[]) => {
    const answer = new AnswerParser({ failures, ids: new SequentialIds(), ...PLAIN });
    const events: ModelEvent[] = [];
    for (const chunk of chunks) answer.add(chunk, events);
    answer.end(ending, events);
    return events.at(-1);
  };
  const text = delta({ content: 'a' });
  const call = delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] });
  t.strictSame(end('done', [text]), END);
  for (const [ending, chunks] of [
    ['cut', [text]],
    ['done', [call]],
    ['done', [text, call]],
    ['done', [delta({ reasoning: 'hm' })]],
  ] as const)
    t.throws(() => end(ending, chunks), { message: /cut off/, retryable: true });
});

t.test('counts tokens wherever servers report them', async (t) => {
  const counts = (chunk: object) => {
    const event = parse(delta({ content: 'a' }), FINISH, chunk).find(({ type }) => type === 'usage');
    return event?.type === 'usage' ? Object.values(event.usage) : undefined;
  };
  const usage = { prompt_tokens: 8, completion_tokens: 2 };
  t.same(counts({ choices: [], usage }), [8, 2, 0, 0, 0]);
  t.same(counts({ choices: [{ delta: {}, usage }] }), [8, 2, 0, 0, 0], 'in the choice');
  t.same(counts({ choices: [], x_groq: { id: 'x', usage } }), [8, 2, 0, 0, 0], 'in x_groq');
  t.same(counts({ usage: { ...usage, prompt_cache_hit_tokens: 5, prompt_cache_miss_tokens: 3 } }), [8, 2, 5, 0, 0], 'DeepSeek');
  t.same(counts({ usage: { ...usage, cached_tokens: 4 } }), [8, 2, 4, 0, 0], 'Moonshot');
  const written = { ...usage, prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 4 } };
  t.same(counts({ usage: written }), [8, 2, 1, 4, 0], 'OpenRouter');
  t.same(counts({ usage: { ...usage, cache_creation_input_tokens: 4 } }), [8, 2, 0, 4, 0], 'gateways to Anthropic');
  t.same(counts({ usage: { ...usage, prompt_tokens_details: { cache_write_tokens: -1 } } }), [8, 2, 0, 0, 0], 'not a count');
  t.same(counts({ usage: { input_tokens: 8, output_tokens: 2 } }), [8, 2, 0, 0, 0], 'other names');
  t.same(counts({ usage: { ...usage, total_tokens: 110 } }), [8, 102, 0, 0, 0], 'reasoning in the total only');
  t.same(counts({ timings: { prompt_n: 3, cache_n: 5, predicted_n: 2 } }), [8, 2, 5, 0, 0], 'llama.cpp');
  t.equal(counts({ usage: null, timings: {} }), undefined);
});

t.test('finds errors in every known form', async (t) => {
  const message = (chunk: unknown) => {
    try {
      parse(chunk);
    } catch (error) {
      return (error as Error).message.replace('the model server reported an error', 'error');
    }
    return 'none';
  };
  for (const chunk of [
    { error: { message: 'No.' } },
    { error: 'No.' },
    { error: [{ message: 'No.' }] },
    { choices: [{ delta: { content: '' }, finish_reason: 'error', error: { code: 502, message: 'No.' } }] },
    { choices: [], x_groq: { error: 'No.' } },
    { choices: null, base_resp: { status_code: 1004, status_msg: 'No.' } },
    { code: 500, message: 'No.' },
    { code: 500, msg: 'No.' },
    { detail: 'No.' },
    { detail: [{ loc: ['body'], msg: 'No.' }] },
    { object: 'error', message: 'No.', type: 'BadRequestError' },
    { type: 'error', error: { type: 'overloaded_error', message: 'No.' } },
    { error_code: 17, error_msg: 'No.' },
    { success: false, errors: [{ message: 'No.' }] },
    [{ error: { code: 429, message: 'No.' } }],
  ])
    t.equal(message(chunk), 'error: No.', JSON.stringify(chunk));
  t.equal(message({ object: 'error' }), 'error.');
  t.match(message({ base_resp: { status_code: 0, status_msg: 'success' } }), /an answer without choices: /);
});

t.test('an answer without choices is named, without a choice to read', async (t) => {
  const broken =
    (...chunks: readonly unknown[]) =>
    () =>
      parse(...chunks);
  t.throws(
    broken({ id: 'x', choices: [] }),
    { message: 'the model server sent an answer without choices: {"id":"x","choices":[]}.' },
    'baseUrl is right: only a chat-completions server sends choices',
  );
  t.throws(broken({ id: 'x', usage: { prompt_tokens: 1 } }), { message: /without choices: .* Check that baseUrl points to/ });
  t.throws(broken({ type: 'message_start', message: { role: 'assistant' } }), { message: /"message_start"/ });
  t.throws(broken('text'), { message: /JSON that is not an object: text/ });
  t.throws(broken(delta({ content: 'a' }), 7), { message: 'the model server sent JSON that is not an object: 7.' });
});

t.test('blocked content ends the answer with its reason, or fails without blaming baseUrl', async (t) => {
  const counted = { choices: [], usage: { prompt_tokens: 5, completion_tokens: 0 } };
  const blocked = [
    { type: 'usage', usage: { promptTokens: 5 } },
    { type: 'end', reason: 'content_filter' },
  ];
  t.match(parse({ choices: [], promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, counted), blocked);
  t.match(parse({ ...counted, prompt_feedback: { block_reason: 'OTHER' } }), blocked);
  t.match(parse({ promptFeedback: { blockReason: 'SAFETY' } }), blocked.slice(1), 'without choices and usage');
  const seen = JSON.stringify(counted);
  const message = `the model server sent no answer to the request, as some do when they block its content: ${seen}.`;
  for (const chunks of [[counted], [{ choices: [] }, counted], [{ ...counted, promptFeedback: {} }, counted]])
    t.throws(() => parse(...chunks), { message, retryable: false, isRequestFault: true });
  t.strictSame(reasons({ choices: [], promptFeedback: null }, delta({ content: 'a' }), FINISH), ['text', 'stop'], 'not blocked');
});

t.test('reads the forms of older endpoints', async (t) => {
  t.strictSame(parse({ choices: [{ text: 'old', finish_reason: 'stop' }] }), [{ type: 'text', text: 'old' }, END]);
  const called = parse(
    delta({ function_call: { name: 'f', arguments: '' } }),
    delta({ function_call: { arguments: '{"a":1}' } }),
    delta({ function_call: {} }, { finish_reason: 'function_call' }),
  );
  t.match(called, [{ type: 'tool-call', name: 'f', arguments: '{"a":1}' }, { reason: 'tool_calls' }]);
});
