import type { AgentEvent } from '@plugboard/kernel';
import t from 'tap';
import { isCompletion } from './support/reference-schema.js';
import { events, finished, NOW, says, startRoute } from './support/route.js';

interface Completion {
  readonly id: string;
  readonly choices: readonly [{ readonly message: { readonly content: string | null }; readonly finish_reason: string }];
  readonly usage: object;
}

async function completion(batches: Iterable<readonly AgentEvent[]>, fields = {}): Promise<Completion> {
  const reply = await startRoute({ batches }).ask(fields);
  return reply.body as unknown as Completion;
}

const step = (step: number) => ({ type: 'step', step, connection: 'fast' }) as const;
const text = (text: string) => ({ type: 'text', text }) as const;
const clock = { entry: 'tools.clock', name: 'clock' };

/** A step that says something and calls a tool of the server's own. */
const toolStep = (said: string): AgentEvent[] => [
  step(1),
  ...(said === '' ? [] : [text(said)]),
  { type: 'tool-call', id: 'c1', name: 'clock', arguments: '{}', tool: clock },
  { type: 'tool-result', id: 'c1', content: '12:00', images: [], isError: false, milliseconds: 1 },
];

t.test('C-075 C-076 C-077 C-078 the whole answer', async (t) => {
  const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 4, cacheWriteTokens: 0, reasoningTokens: 2 };
  const [start = [], said = []] = says('Hel', 'lo');
  const reply = await startRoute({ batches: [start, said, [{ ...finished, usage }]] }).ask();
  t.equal(reply.status, 200);
  t.same(reply.body, {
    id: 'chatcmpl-00000000000000000000000000001',
    object: 'chat.completion',
    created: NOW / 1000,
    model: 'assistant',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hello', refusal: null, annotations: [] },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 0, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 2,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    service_tier: 'default',
    system_fingerprint: 'fp_0123456789ab',
  });
});

t.test('C-075 each answer has a unique id', async (t) => {
  const { ask } = startRoute();
  const ids = [await ask(), await ask()].map(({ body }) => (body as unknown as Completion).id);
  t.equal(new Set(ids).size, 2);
});

t.test('C-079 the system_fingerprint is the target’s', async (t) => {
  const reply = await startRoute({ target: { fingerprint: 'abcdefabcdef' } }).ask();
  t.match(reply.body, { system_fingerprint: 'fp_abcdefabcdef' });
});

t.test('C-080 the answer is the text of the last step, without tool calls', async (t) => {
  const { choices } = await completion([toolStep('Let me look.'), [step(2), text('It is '), text('noon.')], [finished]]);
  t.same(choices[0].message, { role: 'assistant', content: 'It is noon.', refusal: null, annotations: [] });
  t.equal((await completion([toolStep('Let me look.'), [step(2)], [finished]])).choices[0].message.content, '');
});

t.test('C-081 C-083 every kind of answer matches the reference’s schema', async (t) => {
  const call = { type: 'tool-call', id: 'c', name: 'f', arguments: '{"a":1}' } as const;
  const answers = [
    says('Hello'),
    says(),
    [toolStep('Hm.'), [step(2), text('Noon.')], [finished]],
    [toolStep('Hm.'), [{ ...finished, reason: 'length', limit: 'max_steps' }]],
    [[step(1), text('Cut')], [{ ...finished, reason: 'length' }]],
    [[step(1)], [{ ...finished, reason: 'content_filter' }]],
    [[step(1), call], [{ ...finished, reason: 'tool_calls' }]],
  ] satisfies AgentEvent[][][];
  for (const batches of answers) {
    const body = await completion(batches);
    t.ok(isCompletion(body), JSON.stringify(isCompletion.errors));
    t.notMatch(Object.keys(body), ['error']);
  }
});

t.test('C-082 a model call that hit its token limit has finish_reason length', async (t) => {
  const { choices } = await completion([[step(1), text('Once upon')], [{ ...finished, reason: 'length' }]]);
  t.match(choices[0], { finish_reason: 'length', message: { content: 'Once upon' } });
});

t.test('a turn ended by a budget has the text of its last step', async (t) => {
  const end = { ...finished, reason: 'length', limit: 'max_steps' } as const;
  t.equal((await completion([toolStep('First.'), [step(2)], [end]])).choices[0].message.content, 'First.');
  t.equal((await completion([toolStep('First.'), [step(2), text('Second.')], [end]])).choices[0].message.content, 'Second.');
  t.equal((await completion([toolStep('First.'), [step(2)], [step(3)], [end]])).choices[0].message.content, 'First.');
});

t.test('client tool calls are returned', async (t) => {
  const call = (id: string) => ({ type: 'tool-call', id, name: 'weather', arguments: '{"city":"Oslo"}' }) as const;
  const end = { ...finished, reason: 'tool_calls' } as const;
  const handedOut = (id: string) => ({ id, type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } });

  const mixed = await completion([[...toolStep(''), call('a'), call('b')], [end]]);
  t.match(mixed.choices[0], {
    finish_reason: 'tool_calls',
    message: { content: null, tool_calls: [handedOut('a'), handedOut('b')] },
  });

  const spoken = await completion([[step(1), text('One moment.'), call('a')], [end]]);
  t.match(spoken.choices[0].message, { content: 'One moment.', tool_calls: [handedOut('a')] });

  const cut = await completion([[step(1), text('So far.'), call('a')], [{ ...finished, reason: 'length', limit: 'max_tokens' }]]);
  t.notMatch(cut.choices[0].message, { tool_calls: [] }, 'calls that were not run are not returned');
});

t.test('C-084 all characters and an empty answer are returned unchanged', async (t) => {
  for (const odd of ['😀 \u2028 \u0000 "\\', '']) {
    const { choices } = await completion(says(odd));
    t.equal(JSON.parse(JSON.stringify(choices))[0].message.content, odd);
  }
});

t.test('events without a terminal event are a defect', async (t) => {
  await t.rejects(startRoute({ run: () => events([[step(1), text('Hi')]]) }).ask(), /without a terminal event/);
});
