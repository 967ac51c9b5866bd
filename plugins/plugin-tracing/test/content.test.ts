import t from 'tap';
import { AnswerContent, argumentsAttribute, requestContent, resultAttribute } from '../src/content.js';
import { tracedServer } from './traced-server.js';

const SCRIPT = [
  { reasoning: 'Hm.', text: 'Let me look.', toolCalls: [{ id: 'call_7', name: 'clock', arguments: { timeZone: 'UTC' } }] },
  { text: 'It is noon.' },
];

t.test('OB-13 without content, no span has words of the caller, the agent, the model or a tool', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, {
    tracing: { headers: { authorization: 'Bearer canary-header' } },
    models: (url) => ({
      fast: { use: 'openai', baseUrl: url, model: 'scripted', apiKey: 'canary-key', headers: { 'x-team': 'canary-team' } },
    }),
    config: { tools: { clock: {} } },
    agent: { tools: ['clock'], system: 'canary-prompt' },
  });
  model.enqueue(
    {
      reasoning: 'canary-thought',
      text: 'canary-answer',
      toolCalls: [{ name: 'clock', arguments: { timeZone: 'canary/zone' } }],
    },
    { status: 400, body: { error: { message: 'canary-error' } } },
  );
  await (
    await ask(
      { messages: [{ role: 'user', content: 'canary-message' }], user: 'canary-user', metadata: { note: 'canary-metadata' } },
      { authorization: 'Bearer canary-token', cookie: 'id=canary-cookie', 'x-session-id': 'canary-session' },
    )
  ).text();
  await stop();
  t.ok(collector.spans.length >= 5);
  for (const { body } of collector.requests) t.notMatch(body.toString('latin1'), /canary/);
});

t.test('with content, spans have the messages and the calls as the conventions write them', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, {
    tracing: { content: true },
    config: { tools: { clock: {} } },
    agent: { tools: ['clock'], system: 'Be brief.' },
  });
  model.enqueue(...SCRIPT);
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  await (await ask({ messages: [{ role: 'user', content: [{ type: 'text', text: 'Time?' }, image] }] })).text();
  await stop();
  const [first, second] = collector.named('chat scripted').toSorted((a, b) => Number(a.start - b.start));
  const parsed = (span: typeof first, name: string) => JSON.parse(String(span?.attributes[name]));
  t.strictSame(parsed(first, 'gen_ai.system_instructions'), [{ type: 'text', content: 'Be brief.' }]);
  t.strictSame(parsed(first, 'gen_ai.input.messages'), [
    { role: 'user', parts: [{ type: 'text', content: 'Time?' }, { type: 'image_url' }] },
  ]);
  const call = { type: 'tool_call', id: 'call_7', name: 'clock', arguments: '{"timeZone":"UTC"}' };
  t.strictSame(parsed(first, 'gen_ai.output.messages'), [
    {
      role: 'assistant',
      parts: [{ type: 'reasoning', content: 'Hm.' }, { type: 'text', content: 'Let me look.' }, call],
      finish_reason: 'tool_calls',
    },
  ]);
  t.match(parsed(second, 'gen_ai.input.messages'), [
    { role: 'user' },
    { role: 'assistant', parts: [{ content: 'Let me look.' }, { ...call, id: /^call_/ }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: /^call_/, response: /UTC/ }] },
  ]);
  const tool = collector.one('execute_tool clock');
  t.equal(tool.attributes['gen_ai.tool.call.arguments'], '{"timeZone":"UTC"}');
  t.match(parsed(tool, 'gen_ai.tool.call.result'), /UTC/);
});

t.test('long content is cut to valid JSON: the newest messages remain', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, { tracing: { content: true } });
  model.respond({ text: 'y'.repeat(100_000) });
  const messages = Array.from({ length: 20 }, (_, at) => ({
    role: at % 2 ? 'assistant' : 'user',
    content: `${at} ${'é'.repeat(40_000)}`,
  }));
  await (await ask({ messages: [...messages, { role: 'user', content: 'last' }] })).text();
  await stop();
  const { attributes } = collector.one('chat scripted');
  const input = JSON.parse(String(attributes['gen_ai.input.messages']));
  t.ok(String(attributes['gen_ai.input.messages']).length <= 128 * 1024);
  t.equal(input.at(-1).parts[0].content, 'last');
  t.match(input.at(-2).parts[0].content, /^19 é.*… \(40003 characters\)$/s);
  t.ok(input.length < 6);
  t.ok(String(attributes['gen_ai.output.messages']).length < 34 * 1024);
});

t.test('results of tools, refusals and custom calls are parts, and calls without text have no text part', async (t) => {
  const content = requestContent([
    { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'grep', input: 'x+' } }] },
    {
      role: 'tool',
      tool_call_id: 'c1',
      content: [
        { type: 'text', text: 'one ' },
        { type: 'text', text: 'two' },
      ],
    },
    { role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] },
  ]);
  t.equal(content['gen_ai.system_instructions'], undefined);
  t.strictSame(JSON.parse(String(content['gen_ai.input.messages'])), [
    { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'grep', arguments: 'x+' }] },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'c1', response: 'one two' }] },
    { role: 'assistant', parts: [{ type: 'text', content: 'No.' }] },
  ]);
  t.strictSame(new AnswerContent().attributes('stop'), {});
  t.strictSame(resultAttribute(undefined), { 'gen_ai.tool.call.result': undefined });
});

t.test('long texts are cut with their length, and the newest messages that fit are kept', async (t) => {
  const long = 'x'.repeat(40_000);
  t.equal(argumentsAttribute(long)['gen_ai.tool.call.arguments'], `${'x'.repeat(32_768)}… (40000 characters)`);
  const messages = Array.from({ length: 9 }, (_, number) => ({ role: 'user', content: `${number}${long}` }) as const);
  const kept: readonly { readonly parts: readonly { readonly content: string }[] }[] = JSON.parse(
    String(requestContent(messages)['gen_ai.input.messages']),
  );
  t.strictSame(
    kept.map(({ parts }) => parts[0]?.content[0]),
    ['6', '7', '8'],
  );
  const answer = new AnswerContent();
  for (let part = 0; part < 3; part++) answer.add({ type: 'text', text: long });
  t.ok(String(answer.attributes('stop')['gen_ai.output.messages']).length < 33_000, 'what is beyond the limit is not kept');
});
