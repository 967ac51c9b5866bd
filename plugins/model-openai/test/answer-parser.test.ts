import type { ModelEvent } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/kernel/testing';
import t from 'tap';
import { AnswerParser } from '../src/answer/answer-parser.js';
import { Failures } from '../src/failure/failures.js';
import { Redactor } from '../src/failure/redactor.js';

const failures = new Failures(new Redactor([]), new ManualClock(), { idleTimeout: '1s', connectTimeout: '1s' });
const FINISH = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

/** The events of a stream of these chunks, the end included. */
function parse(...chunks: readonly unknown[]): readonly ModelEvent[] {
  const answer = new AnswerParser(failures, new SequentialIds());
  const events: ModelEvent[] = [];
  for (const chunk of chunks) answer.add(chunk, events);
  answer.end(false, events);
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
    'no part',
  ];
  t.strictSame(parse(delta({ content }), FINISH), [{ type: 'reasoning', text: 'Hm.' }, { type: 'text', text: 'Yes' }, END]);
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
    usage: { promptTokens: 5, completionTokens: 2, cachedTokens: 0, reasoningTokens: 1 },
  });
  const [odd] = parse(FINISH, {
    usage: { prompt_tokens: '5', completion_tokens: -1, prompt_tokens_details: { cached_tokens: 0.5 } },
  });
  t.strictSame(odd, {
    type: 'usage',
    usage: { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 },
  });
});

t.test('maps finish reasons to the protocol', async (t) => {
  const reason = (finish_reason: string) => reasons(delta({}, { finish_reason })).at(-1);
  for (const known of ['stop', 'length', 'content_filter']) t.equal(reason(known), known);
  t.equal(reason('max_tokens'), 'length');
  t.equal(reason('model_length'), 'length');
  t.equal(reason('eos'), 'stop', 'an unknown reason');
  t.equal(reason('constructor'), 'stop');
});

t.test('tool calls override the finish reason', async (t) => {
  const call = delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'f' } }] });
  const finish = (finish_reason: string) => delta({}, { finish_reason });
  t.strictSame(reasons(call, finish('stop')), ['tool-call', 'tool_calls']);
  t.strictSame(reasons(call, finish('function_call')), ['tool-call', 'tool_calls']);
  t.strictSame(reasons(call, finish('length')), ['tool-call', 'length']);
  t.strictSame(reasons(finish('tool_calls')), ['stop']);
});

t.test('an incomplete call is dropped if the length limit cut the answer', async (t) => {
  const half = delta({ tool_calls: [{ index: 0, id: 'a', function: { arguments: '' } }] });
  t.strictSame(reasons(half, delta({}, { finish_reason: 'length' })), ['length']);
  t.throws(() => parse(half, FINISH), { name: 'ModelError', message: /a tool call without a name/ });
});

t.test('an answer in one JSON object needs no finish reason', async (t) => {
  const answer = new AnswerParser(failures, new SequentialIds());
  const events: ModelEvent[] = [];
  answer.add(
    { choices: [{ message: { content: 'a', tool_calls: [{ function: { name: 'f', arguments: {} } }] }, finish_reason: null }] },
    events,
  );
  answer.end(true, events);
  t.strictSame(events, [
    { type: 'text', text: 'a' },
    { type: 'tool-call', id: 'call_000000000000000000000001', name: 'f', arguments: '{}' },
    { type: 'end', reason: 'tool_calls' },
  ]);
});

t.test('recognizes a chunk that carries nothing but text', async (t) => {
  const answer = new AnswerParser(failures, new SequentialIds());
  const plain = (chunk: unknown) => answer.add(chunk, []);
  t.equal(plain(delta({ role: 'assistant', content: 'a', tool_calls: [], refusal: null })), 'a');
  t.equal(plain(delta({ content: '' })), undefined);
  for (const more of [{ reasoning: 'x' }, { refusal: 'x' }, { tool_calls: [{}] }])
    t.equal(plain(delta({ content: 'a', ...more })), undefined);
  t.equal(plain(delta({ content: 'a' }, { finish_reason: 'stop' })), undefined);
  t.equal(plain({ ...delta({ content: 'a' }), usage: {} }), undefined);
  t.equal(plain(delta({ content: [{ type: 'text', text: 'a' }] })), undefined);
});
