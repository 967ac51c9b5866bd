import type { Message, ModelRequest } from '@plugboard/kernel';
import type { Extra } from '@plugboard/kernel/contracts';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import type { DialectOptions } from '../../src/provider/dialect.js';
import { resolveDialect } from '../../src/provider/resolve-dialect.js';
import { requestBody } from '../../src/request/request-body.js';

const OF = 'fingerprint';

interface Options extends Partial<DialectOptions> {
  readonly model?: string;
}

function body(request: Partial<ModelRequest>, { model = 'm', ...options }: Options = {}): Record<string, unknown> {
  const dialect = resolveDialect({ provider: 'none', body: {}, omit: [], ...options }, 'localhost', model);
  return JSON.parse(requestBody(model, modelRequest('Hi', request), dialect, OF).toString());
}

function sent(messages: readonly Message[], options: Options = {}): readonly unknown[] {
  return body({ messages }, options).messages as readonly unknown[];
}

const user = (content: string): Message => ({ role: 'user', content });
const tool = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'ok' });
const call = (id: string, data?: unknown) => ({
  id,
  type: 'function' as const,
  function: { name: 'f', arguments: '{}' },
  ...(data === undefined ? {} : { extra: extra(data) }),
});
const calls = (content: string | null, ...list: readonly ReturnType<typeof call>[]): Message => ({
  role: 'assistant',
  content,
  tool_calls: list,
});

function extra(data: unknown): Extra {
  return { connection: 'c', data };
}

t.test('extras are sent back to their model with its own ids', async (t) => {
  const signature = { extra_content: { google: { thought_signature: 's' } } };
  const first = call('call_1', {
    of: OF,
    id: 'functions.f:0',
    fields: { ...signature, function: { provider_specific_fields: { x: 1 } } },
  });
  const conversation: readonly Message[] = [
    user('x'),
    {
      ...calls(null, first, call('call_2', { of: OF, id: 'b' })),
      extra: extra({ of: OF, fields: { reasoning_content: 'hm' } }),
    } as Message,
    tool('call_1'),
    tool('call_2'),
  ];
  t.strictSame(sent(conversation), [
    user('x'),
    {
      role: 'assistant',
      content: null,
      reasoning_content: 'hm',
      tool_calls: [
        {
          id: 'functions.f:0',
          type: 'function',
          ...signature,
          function: { provider_specific_fields: { x: 1 }, name: 'f', arguments: '{}' },
        },
        { ...call('b') },
      ],
    },
    tool('functions.f:0'),
    tool('b'),
  ]);
});

t.test('a call has the id of the conversation, even if an earlier one had the same and another at its model', async (t) => {
  const known = calls(null, call('call_1', { of: OF, id: 'a' }));
  const conversation = [user('x'), known, tool('call_1'), user('y'), calls(null, call('call_1')), tool('call_1')];
  t.strictSame(sent(conversation), [
    user('x'),
    calls(null, call('a')),
    tool('a'),
    user('y'),
    calls(null, call('call_1')),
    tool('call_1'),
  ]);
});

t.test('extras of another model are not sent', async (t) => {
  for (const data of [{ of: 'other', id: 'x', fields: { a: 1 } }, 'text', null, { id: 'x' }, { of: OF, id: 7, fields: 'x' }]) {
    const message = { ...calls(null, call('call_1', data)), extra: extra(data) } as Message;
    t.strictSame(sent([user('x'), message, tool('call_1')]), [user('x'), calls(null, call('call_1')), tool('call_1')]);
  }
});

t.test('an empty assistant message is not sent', async (t) => {
  const empty: readonly Message[] = [
    { role: 'assistant', content: '' },
    { role: 'assistant', content: ' \n' },
    { role: 'assistant', content: null },
    { role: 'assistant', content: [] },
    { role: 'assistant', content: [{ type: 'text', text: '' }] },
  ];
  t.strictSame(sent([user('x'), ...empty, user('y')]), [user('x'), user('y')]);
  const kept: readonly Message[] = [
    { role: 'assistant', content: null, refusal: 'No.' },
    { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
    { role: 'assistant', content: 'a' },
  ];
  t.strictSame(sent(kept), kept);
});

t.test('texts and names that servers refuse are replaced', async (t) => {
  const blank: readonly Message[] = [
    { role: 'system', content: ' ' },
    user(' \n'),
    { role: 'user', content: [{ type: 'text', text: '' }] },
    { role: 'user', content: 'x', name: 'John Smith <j@x>' },
    { role: 'assistant', content: 'y', name: '/'.repeat(70) },
    { role: 'user', content: 'x', name: 'Jürgen' },
  ];
  t.strictSame(sent(blank, { provider: 'openai' }), [
    user('(empty message)'),
    user('(empty message)'),
    { role: 'user', content: 'x', name: 'John_Smith_j@x_' },
    { role: 'assistant', content: 'y', name: '_' },
    { role: 'user', content: 'x', name: 'Jürgen' },
  ]);
  t.strictSame(sent([user('')]), [user('')], 'a server without a preset gets the text of the caller');
  const refusal = { type: 'refusal' as const, refusal: 'no.' };
  const parts: Message = { role: 'assistant', content: [{ type: 'text', text: 'Well, ' }, refusal] };
  t.strictSame(sent([user('x'), parts], { omit: ['refusal'] })[1], { role: 'assistant', content: 'Well, no.' });
  t.strictSame(sent([user('x'), parts])[1], parts);
});

t.test('roles: user-first begins with the user', async (t) => {
  const begun: readonly Message[] = [{ role: 'system', content: 'a' }, calls(null, call('a')), tool('a'), user('x')];
  for (const roles of ['user-first', 'alternate'] as const)
    t.match(sent(begun, { roles }).slice(0, 3), [
      { role: 'system' },
      { role: 'user', content: /left out/ },
      { tool_calls: [{}] },
    ]);
  t.equal(sent(begun).length, 4);
  t.strictSame(sent([user('x'), { role: 'assistant', content: 'y' }], { roles: 'user-first' }).length, 2);
});

t.test('omit leaves fields out everywhere', async (t) => {
  const messages: readonly Message[] = [
    { role: 'user', content: 'x', name: 'anna' },
    { role: 'assistant', content: null, refusal: 'No.', name: 'helper' },
    { role: 'function', content: 'ok', name: 'f' },
  ];
  t.strictSame(sent(messages, { omit: ['name', 'refusal'] }), [
    user('x'),
    { role: 'assistant', content: 'No.' },
    { role: 'function', content: 'ok', name: 'f' },
  ]);
  const tools = [{ name: 'f', description: 'd', inputSchema: { type: 'object', properties: {} }, strict: true }];
  const request = { tools, params: { seed: 1, top_p: 1 } };
  const { stream_options, seed, top_p, tools: declared } = body(request, { omit: ['stream_options', 'seed', 'strict'] });
  t.same([stream_options, seed, top_p], [undefined, undefined, 1]);
  t.strictSame(declared, [{ type: 'function', function: { name: 'f', description: 'd', parameters: tools[0]?.inputSchema } }]);
});

t.test('body adds fields and replaces parameters', async (t) => {
  const { top_k, temperature } = body({ params: { temperature: 1 } }, { body: { top_k: 5, temperature: 0 } });
  t.same([top_k, temperature], [5, 0]);
});

t.test('tokenParam renames the token limit', async (t) => {
  const limits = (params: object, tokenParam?: 'max_tokens' | 'max_completion_tokens') => {
    const { max_tokens, max_completion_tokens } = body({ params: { ...params } }, { tokenParam });
    return { max_tokens, max_completion_tokens };
  };
  t.same(limits({ max_tokens: 5 }), { max_tokens: 5, max_completion_tokens: undefined });
  t.same(limits({ max_tokens: 5 }, 'max_completion_tokens'), { max_tokens: undefined, max_completion_tokens: 5 });
  t.same(limits({ max_completion_tokens: 5 }, 'max_tokens'), { max_tokens: 5, max_completion_tokens: undefined });
  t.same(limits({ max_tokens: 5, max_completion_tokens: 6 }, 'max_tokens'), { max_tokens: 5, max_completion_tokens: undefined });
  t.same(limits({}, 'max_tokens'), { max_tokens: undefined, max_completion_tokens: undefined });
});

t.test('toolIds: alnum9 gives every id nine letters and digits, always the same', async (t) => {
  const conversation = [user('x'), calls(null, call('call_abc'), call('abcdefgh1')), tool('call_abc'), tool('abcdefgh1')];
  const [, asked, first, second] = sent(conversation, { toolIds: 'alnum9' }) as [
    unknown,
    { tool_calls: { id: string }[] },
    { tool_call_id: string },
    { tool_call_id: string },
  ];
  t.match(asked.tool_calls[0]?.id, /^[A-Za-z0-9]{9}$/);
  t.same(
    asked.tool_calls.map(({ id }) => id),
    [first.tool_call_id, second.tool_call_id],
  );
  t.equal(second.tool_call_id, 'abcdefgh1');
  t.same(sent(conversation, { toolIds: 'alnum9' }), sent(conversation, { toolIds: 'alnum9' }));
});

t.test('emptyContent is the content of calls without text', async (t) => {
  for (const content of [null, ''])
    for (const emptyContent of [null, ''] as const)
      t.match(sent([calls(content, call('a')), tool('a')], { emptyContent }), [{ content: emptyContent }]);
  t.match(sent([calls('text', call('a')), tool('a')], { emptyContent: '' }), [{ content: 'text' }]);
});

t.test('roles: alternate joins neighbours and separates tool results from users', async (t) => {
  const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AA==' } };
  const conversation: readonly Message[] = [
    { role: 'system', content: 'a' },
    user('1'),
    { role: 'system', content: 'b' },
    { role: 'user', content: [image] },
    { role: 'assistant', content: 'Let me see.' },
    calls(null, call('a')),
    tool('a'),
    { role: 'user', content: [{ type: 'text', text: 'Images:' }, image] },
    { role: 'assistant', content: '' },
    user('2'),
    { role: 'assistant', content: 'x' },
    { role: 'assistant', content: 'y' },
  ];
  t.strictSame(sent(conversation, { roles: 'alternate' }), [
    { role: 'system', content: 'a\n\nb' },
    { role: 'user', content: [{ type: 'text', text: '1' }, image] },
    { role: 'assistant', content: 'Let me see.', tool_calls: [call('a')] },
    tool('a'),
    { role: 'assistant', content: 'OK.' },
    { role: 'user', content: [{ type: 'text', text: 'Images:' }, image, { type: 'text', text: '2' }] },
    { role: 'assistant', content: 'x\n\ny' },
  ]);
  t.equal(sent(conversation).length, 11, 'any order is sent unchanged');
});

t.test('alwaysStream asks for a stream for callers that do not', async (t) => {
  t.match(body({ incremental: false }, { alwaysStream: true }), { stream: true, stream_options: { include_usage: true } });
  t.match(body({ incremental: false }), { stream: false });
});

t.test('the schema of a response format is translated like that of a tool', async (t) => {
  const schema = { type: 'object', properties: {}, additionalProperties: false };
  const format = { type: 'json_schema', json_schema: { name: 'x', schema } };
  const sentFormat = (options: Options) => body({ params: { response_format: format } }, options).response_format;
  t.strictSame(sentFormat({}), format);
  t.strictSame(sentFormat({ schema: 'gemini' }), {
    type: 'json_schema',
    json_schema: { name: 'x', schema: { type: 'object', properties: {} } },
  });
  t.strictSame(body({ params: { response_format: { type: 'text' } } }, { schema: 'gemini' }).response_format, { type: 'text' });
});

t.test('calls of another connection get what the server requires', async (t) => {
  const conversation = [
    user('x'),
    calls(null, call('a'), call('b')),
    tool('a'),
    tool('b'),
    { role: 'assistant', content: 'y' } as Message,
  ];
  const [, asked] = sent(conversation, { provider: 'gemini', model: 'gemini-3-pro' });
  t.match(asked, {
    tool_calls: [{ extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } }, { id: 'b' }],
  });
  const [, , ...rest] = sent(conversation, { provider: 'gemini', model: 'gemini-3-pro' });
  t.notMatch(JSON.stringify(rest), 'signature');
  t.notMatch(JSON.stringify(sent(conversation, { provider: 'gemini', model: 'gemini-2.5-flash' })), 'signature');
  const own = [user('x'), calls(null, call('a', { of: OF, id: 'a' })), tool('a')];
  t.notMatch(
    JSON.stringify(sent(own, { provider: 'gemini', model: 'gemini-3-pro' })),
    'signature',
    'its own call is as it made it',
  );

  t.match(sent(conversation, { provider: 'deepseek' }), [{}, { reasoning_content: '' }, {}, {}, { reasoning_content: '' }]);
  t.match(sent(conversation, { provider: 'moonshot', model: 'kimi-k2.6' })[1], { reasoning_content: ' ' });
  t.notMatch(JSON.stringify(sent(conversation, { provider: 'moonshot', model: 'moonshot-v1-8k' })), 'reasoning_content');
  t.notMatch(JSON.stringify(sent(conversation, { provider: 'groq' })), 'reasoning_content');
});
