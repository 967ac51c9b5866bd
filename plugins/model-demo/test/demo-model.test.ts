import { type Message, ModelConnectors, type ModelEvent, type ModelRequest } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { ManualClock, modelConnectorContract, modelRequest, pluginContract, testContext } from '@plugboard/testing';
import t from 'tap';
import plugin from '../src/index.js';

const CLOCK: ToolDeclaration = {
  name: 'clock',
  description: 'Tells the current date and time in a time zone.',
  inputSchema: { type: 'object', properties: { timeZone: { type: 'string' } } },
};

function model(config: object = { pace: '0ms' }, clock = new ManualClock()) {
  return testContext(plugin, { config, clock, entry: 'models.demo' }).contributed(ModelConnectors, 'demo');
}

async function answer(request: ModelRequest): Promise<readonly ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const batch of model().stream(request, new AbortController().signal)) events.push(...batch);
  return events;
}

async function textOf(request: ModelRequest): Promise<string> {
  return (await answer(request)).map((event) => (event.type === 'text' ? event.text : '')).join('');
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('fulfils the model connector contract', async (t) => {
  const samples = { text: modelRequest('Hello'), toolCall: modelRequest('What time is it?', { tools: [CLOCK] }) };
  modelConnectorContract(t.test, { open: () => model(), ...samples });
});

t.test('introduces itself, repeats what it received, and explains how to get a real model', async (t) => {
  const messages: Message[] = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'My name is Anna.' },
    { role: 'assistant', content: 'Hello Anna.' },
    { role: 'user', content: [{ type: 'text', text: 'What is my name?' }] },
  ];
  t.equal(
    await textOf(modelRequest('', { messages, tools: [CLOCK] })),
    [
      "I am Plugboard's stand-in model: a small program that lets you try the server without an account. I understand nothing.",
      'You said: "What is my name?"\nBefore that you said: "My name is Anna."\nI received 3 messages of this conversation, 2 of them yours.',
      'I call a tool of this agent when your message names it and contains its arguments (a "quoted text", a path, a number): clock. Try: "clock".',
      'For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST and start the server again, or name a connection of your own under "models" in plugboard.yaml.',
    ].join('\n\n'),
  );
});

t.test('introduces itself without tools, without a prompt, and with many tools', async (t) => {
  t.match(await textOf(modelRequest('Hello')), 'You said: "Hello"\nI received no other message of this conversation.');
  t.match(await textOf(modelRequest('Hello')), 'This agent has no tools.');
  t.match(await textOf(modelRequest('', { messages: [{ role: 'system', content: 'Be brief.' }] })), 'You said nothing.');
  const long = await textOf(modelRequest(`${'x'.repeat(199)}🧮${'y'.repeat(50)}`));
  t.match(long, `"${'x'.repeat(199)}… (52 more characters)"`);
  const tools = Array.from({ length: 8 }, (_, i) => ({
    ...CLOCK,
    name: `t${i}`,
    inputSchema: { type: 'object', required: ['x'] },
  }));
  const offer = await textOf(modelRequest('Hello', { tools }));
  t.match(offer, 't0, t1, t2, t3, t4, t5 and 2 more.');
  t.notMatch(offer, 'Try:');
});

t.test('calls a tool by its declared name, with JSON arguments and a new id', async (t) => {
  const events = await answer(modelRequest('What time is it in Tokyo?', { tools: [CLOCK] }));
  t.strictSame(events, [
    { type: 'tool-call', id: 'call_000000000000000000000001', name: 'clock', arguments: '{"timeZone":"Asia/Tokyo"}' },
    { type: 'usage', usage: { promptTokens: 16, completionTokens: 1, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
    { type: 'end', reason: 'tool_calls' },
  ]);
});

t.test('repeats tool results, shortened, and calls no tool again', async (t) => {
  const call = (id: string, name: string) => ({ id, type: 'function' as const, function: { name, arguments: '{}' } });
  const messages: Message[] = [
    { role: 'user', content: 'an earlier turn' },
    { role: 'assistant', content: null, tool_calls: [call('old', 'clock')] },
    { role: 'tool', tool_call_id: 'old', content: 'long ago' },
    { role: 'assistant', content: 'It was long ago.' },
    { role: 'user', content: 'What time is it?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        call('a', 'clock'),
        call('d', 'files__list_directory'),
        { id: 'b', type: 'custom', custom: { name: 'grep', input: '' } },
      ],
    },
    { role: 'tool', tool_call_id: 'b', content: 'z'.repeat(1001) },
    { role: 'tool', tool_call_id: 'a', content: 'noon' },
    { role: 'tool', tool_call_id: 'c', content: 'whose?' },
    { role: 'function', name: 'old_style', content: 'fine' },
    { role: 'tool', tool_call_id: 'd', content: '[FILE] a.md\n[FILE] ```.md' },
  ];
  t.equal(
    await textOf(modelRequest('', { messages, tools: [CLOCK], params: { tool_choice: 'required' } })),
    [
      `I called grep. It returned:\n\n${'z'.repeat(1000)}… (1 more characters)`,
      'I called clock. It returned:\n\nnoon',
      'I called c. It returned:\n\nwhose?',
      'I called old_style. It returned:\n\nfine',
      'I called files/list_directory. It returned:\n\n````\n[FILE] a.md\n[FILE] ```.md\n````',
      'I am only a stand-in: I can call tools, but I do not understand their results. For a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST and start the server again, or name a connection of your own under "models" in plugboard.yaml.',
    ].join('\n\n'),
  );
});

t.test('stops at the token limit, and counts words as tokens', async (t) => {
  const ending = async (params: ModelRequest['params']) => (await answer(modelRequest('Hello there', { params }))).slice(-3);
  t.strictSame(await ending({ max_tokens: 3 }), [
    { type: 'text', text: "Plugboard's " },
    { type: 'usage', usage: { promptTokens: 2, completionTokens: 3, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
    { type: 'end', reason: 'length' },
  ]);
  t.match(await ending({ max_tokens: 3, max_completion_tokens: 2 }), [{ text: 'am ' }, {}, { reason: 'length' }]);
  t.match(await ending({ max_tokens: 1000 }), [{}, {}, { reason: 'stop' }]);
  t.match(await ending({ max_tokens: null }), [{}, {}, { reason: 'stop' }]);
});

t.test('takes the parameters that have an effect and no others', async (t) => {
  const demo = model();
  const asked = ['max_tokens', 'max_completion_tokens', 'tool_choice', 'temperature', 'stop'];
  t.same(
    asked.filter((param) => demo.supportsParam(param)),
    ['max_tokens', 'max_completion_tokens', 'tool_choice'],
  );
});

t.test('streams one word per pace', async (t) => {
  const clock = new ManualClock();
  const words = model({}, clock).stream(modelRequest('Hello'), new AbortController().signal)[Symbol.asyncIterator]();
  let arrived = 0;
  const first = words.next().finally(() => arrived++);
  clock.advance(19);
  await Promise.resolve();
  t.equal(arrived, 0);
  clock.advance(1);
  t.same((await first).value, [{ type: 'text', text: 'I ' }]);
  t.equal(clock.pending, 0, 'does not run ahead of its reader');
  const second = words.next();
  clock.advance(20);
  t.same((await second).value, [{ type: 'text', text: 'am ' }]);
});

t.test('sends the answer at once to a reader that is not incremental', async (t) => {
  const clock = new ManualClock();
  const batches: (readonly ModelEvent[])[] = [];
  for await (const batch of model({}, clock).stream(
    modelRequest('Hello', { incremental: false }),
    new AbortController().signal,
  )) {
    batches.push(batch);
  }
  t.same(
    batches.map((batch) => batch.map((event) => event.type)),
    [['text'], ['usage', 'end']],
  );
});

t.test('an abort throws its reason at once, without waiting for the pace', async (t) => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const next = model({}, clock).stream(modelRequest('Hello'), abort.signal)[Symbol.asyncIterator]().next();
  const reason = new Error('the caller disconnected');
  abort.abort(reason);
  await t.rejects(next, reason);
  t.equal(clock.pending, 0);
});
