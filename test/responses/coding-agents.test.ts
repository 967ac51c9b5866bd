/**
 * Responses as coding agents speak it (CL-1 to CL-9), over HTTP and WebSocket: tools in namespaces,
 * custom and hosted tools, items that add tools, counting tokens.
 */
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { type LiveEvent, type LiveResponseBody, LiveSocket } from '../support/live-socket.js';
import { respond, responseIn } from '../support/respond.js';
import { TestServer } from '../support/test-server.js';

type Tap = Parameters<typeof LiveSocket.open>[0];

const CONFIG = liveConfig('{}', '').concat(`
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, input: [text, image] }
agents:
  assistant: { model: fast, clientTools: passthrough }
`);
const app = await TestServer.start(t, CONFIG);
const user = (content: string) => ({ role: 'user', content });
const f = (name: string) => ({ type: 'function', name, parameters: { type: 'object', properties: {} } });
const patch = { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } };

/** Creates a response on each surface. */
const SURFACES: Readonly<Record<string, (t: Tap, body: object) => Promise<LiveResponseBody>>> = {
  'HTTP, plain': async (_, body) => responseIn(await respond(app, { store: false, ...body })),
  'HTTP, streamed': async (_, body) => {
    const { text } = await respond(app, { store: false, stream: true, ...body });
    return terminal(eventsIn(text)).response as LiveResponseBody;
  },
  WebSocket: async (t, body) => {
    const live = await LiveSocket.open(t, app);
    return live.ask({ model: 'assistant', store: false, ...body });
  },
};

function eventsIn(text: string): readonly LiveEvent[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as LiveEvent);
}

function terminal(events: readonly LiveEvent[]): LiveEvent {
  const last = events.at(-1);
  if (!last) throw new Error('no events');
  return last;
}

/** The names of the tools that the model was offered last. */
function offered(): readonly string[] {
  const tools = (app.asked.tools ?? []) as readonly { function: { name: string } }[];
  return tools.map(({ function: { name } }) => name);
}

for (const [surface, create] of Object.entries(SURFACES)) {
  t.test(`CL-1 CL-2 CL-4 ${surface}: namespaces, hosted tools, and tools that the input adds`, async (t) => {
    app.models.enqueue({ toolCalls: [{ name: 'agents__stop', arguments: ['{"id"', ':1}'] }] });
    const tools = [f('read'), { type: 'namespace', name: 'agents', tools: [f('stop')] }, { type: 'web_search' }];
    const more = {
      type: 'additional_tools',
      role: 'developer',
      tools: [f('late'), { type: 'namespace', name: 'n', tools: [patch] }],
    };
    const { output, tools: echoed } = await create(t, { input: [more, user('Go')], tools });
    t.same(offered(), ['agents__stop', 'late', 'n__apply_patch', 'read']);
    t.match(output, [{ type: 'function_call', name: 'stop', namespace: 'agents', arguments: '{"id":1}' }]);
    t.match(echoed, [{ name: 'read' }, { type: 'namespace' }, { type: 'web_search' }]);
    app.models.enqueue({ text: ['Done.'] });
    const [call] = output;
    const result = { type: 'function_call_output', call_id: call?.call_id, output: 'stopped' };
    await create(t, { input: [more, user('Go'), call, result, result], tools });
    t.match(app.asked.messages.slice(1), [
      { role: 'assistant', tool_calls: [{ function: { name: 'agents__stop' } }] },
      { role: 'tool', content: 'stopped' },
    ]);
    t.equal(app.asked.messages.length, 3, 'CL-7: a result that is sent twice is taken once');
  });

  t.test(`CL-3 CL-9 ${surface}: a custom tool, and a picture in a result`, async (t) => {
    const input = '*** Begin\n+😀 "x"\n';
    const json = JSON.stringify({ input });
    app.models.enqueue({
      toolCalls: [{ name: 'n__apply_patch', arguments: [json.slice(0, 14), json.slice(14, 24), json.slice(24)] }],
    });
    const tools = [{ type: 'namespace', name: 'n', tools: [patch] }];
    const { output } = await create(t, { input: 'Go', tools });
    t.match(output, [{ type: 'custom_tool_call', name: 'apply_patch', namespace: 'n', input, status: 'completed' }]);
    const [call] = output;
    app.models.enqueue({ text: ['Done.'] });
    const image_url = 'data:image/png;base64,AA==';
    const pictures = [
      { type: 'input_text', text: 'See' },
      { type: 'input_image', image_url, detail: 'auto' },
    ];
    const result = { type: 'custom_tool_call_output', call_id: call?.call_id, output: pictures };
    const { status } = await create(t, { input: [user('Go'), call, result], tools });
    t.equal(status, 'completed');
    t.match(app.asked.messages.slice(1), [
      { role: 'assistant', tool_calls: [{ function: { name: 'n__apply_patch', arguments: json } }] },
      { role: 'tool', content: 'See' },
      { role: 'user', content: [{ type: 'text' }, { type: 'image_url', image_url: { url: image_url } }] },
    ]);
  });
}

for (const [surface, create] of Object.entries(SURFACES)) {
  t.test(`CL-5 ${surface}: a model's reasoning comes back to it through the client, sealed`, async (t) => {
    const tools = [f('read')];
    const include = ['reasoning.encrypted_content'];
    app.models.enqueue({
      reasoning: 'The secret.',
      toolCalls: ['a', 'b'].map((path) => ({ name: 'read', arguments: { path } })),
    });
    const { output } = await create(t, { input: 'Go', tools, include });
    t.same(
      output.map(({ type }) => type),
      ['function_call', 'function_call', 'reasoning'],
    );
    const [a, b, sealed] = output;
    t.match(sealed, { summary: [], encrypted_content: /^[\w-]{100,}$/ });
    t.notMatch(JSON.stringify(output), 'secret');
    const results = [a, b].map((call) => ({ type: 'function_call_output', call_id: call?.call_id, output: 'x' }));
    /** What the model receives as its own reasoning, if the client sends these items. */
    const returned = async (...items: readonly unknown[]) => {
      await create(t, { input: items, tools, include });
      return app.asked.messages.map((message) => (message as { reasoning_content?: string }).reasoning_content);
    };
    const kept = [undefined, 'The secret.', undefined, undefined];
    t.same(await returned(user('Go'), a, b, sealed, ...results), kept);
    t.same(await returned(user('Go'), sealed, a, b, ...results), kept, 'before its calls');
    t.same(await returned(user('Go'), a, b, ...results, sealed), kept, 'after the results');
    const none = kept.map(() => undefined);
    t.same(await returned(user('Go'), a, b, ...results), none);
    t.same(await returned(user('Stop'), a, b, sealed, ...results), none, 'AI-8: what was before it has changed');
    t.same(await returned(user('Go'), a, b, { ...sealed, encrypted_content: 'AAAA' }, ...results), none, 'forged');
  });
}

t.test('CL-5 reasoning is sealed for responses that are not stored, and replayed with them', async (t) => {
  const answer = { reasoning: 'Hm.', toolCalls: [{ name: 'read', arguments: {} }] };
  const body = { input: 'Go', tools: [f('read')], include: ['reasoning.encrypted_content'] };
  app.models.enqueue(answer, answer, answer);
  const stored = await respond(app, body);
  t.equal(stored.headers.get('x-ignored-params'), 'include');
  t.notMatch(stored.text, 'encrypted_content');
  t.notMatch((await respond(app, { ...body, include: [], store: false })).text, 'encrypted_content');
  const key = { 'idempotency-key': 'sealed' };
  const request = { ...body, store: false, stream: true };
  const first = await respond(app, request, key);
  const second = await respond(app, request, key);
  t.equal(first.headers.get('x-ignored-params'), null);
  t.equal(second.headers.get('idempotent-replayed'), 'true');
  for (const { text } of [first, second]) t.equal(terminal(eventsIn(text)).response?.output.at(-1)?.type, 'reasoning');
  const foreign = { type: 'reasoning', summary: [], encrypted_content: 'of another server' };
  const { headers } = await respond(app, { input: [user('Go'), foreign], store: false });
  t.equal(headers.get('x-ignored-params'), 'input.1.encrypted_content');
});

/** Creates responses that continue one another. */
const CHAINS: Readonly<Record<string, (t: Tap) => Promise<(body: object) => Promise<LiveResponseBody>>>> = {
  'HTTP, stored': async () => async (body) => responseIn(await respond(app, body)),
  'WebSocket, not stored': async (t) => {
    const live = await LiveSocket.open(t, app);
    return (body) => live.ask({ model: 'assistant', store: false, ...body });
  },
};

for (const [chain, open] of Object.entries(CHAINS)) {
  t.test(`CL-4 ${chain}: what developer messages and additional_tools say holds for the whole chain`, async (t) => {
    const create = await open(t);
    const developer = (content: string) => ({ role: 'developer', content });
    const adds = (...tools: object[]) => ({ type: 'additional_tools', role: 'developer', tools });
    const first = await create({ input: [developer('Be brief.'), adds(f('late'), f('other')), user('Go')], tools: [f('read')] });
    t.same(offered(), ['late', 'other', 'read']);
    const next = { input: [user('On')], tools: [f('read')], instructions: 'Once.' };
    const second = await create({ ...next, previous_response_id: first.id });
    t.same(offered(), ['late', 'other', 'read']);
    app.models.enqueue({ toolCalls: [{ name: 'late', arguments: {} }] });
    const again = { ...f('other'), description: 'Newer.' };
    const input = [developer('Be kind.'), adds(again), user('On')];
    const { id, output } = await create({ input, tools: [f('read')], previous_response_id: second.id });
    t.same(offered(), ['late', 'other', 'read']);
    t.match(app.asked.tools, [{}, { function: { description: 'Newer.' } }, {}]);
    t.match(output, [{ type: 'function_call', name: 'late' }]);
    const result = { type: 'function_call_output', call_id: output[0]?.call_id, output: 'x' };
    await create({ input: [result], previous_response_id: id });
    t.same(offered(), ['late', 'other']);
    const said = app.asked.messages.flatMap(({ role, content }) => (role === 'system' ? [content] : []));
    t.same(said, ['Be brief.', 'Be kind.'], 'instructions are for one response');
  });
}

t.test('CL-4 a warm-up with developer messages alone begins a conversation with them', async (t) => {
  const live = await LiveSocket.open(t, app);
  const input = [{ role: 'developer', content: 'You are a coding agent.' }];
  const { id } = await live.ask({ model: 'assistant', store: false, generate: false, input });
  await live.ask({ model: 'assistant', store: false, previous_response_id: id, input: 'Hi' });
  t.match(app.asked.messages, [
    { role: 'system', content: 'You are a coding agent.' },
    { role: 'user', content: 'Hi' },
  ]);
});

t.test('CL-3 the input of a custom tool is streamed as it comes, and replayed', async (t) => {
  const gate = Promise.withResolvers<void>();
  const toolCalls = [{ name: 'apply_patch', arguments: ['{"input":"one', ' two', gate.promise, ' three"}'] }];
  app.models.enqueue({ toolCalls });
  const live = await LiveSocket.open(t, app);
  live.create({ model: 'assistant', input: 'Go', tools: [patch] });
  const first = await live.until('response.custom_tool_call_input.delta');
  t.equal(terminal(first).delta, 'one');
  gate.resolve();
  const rest = await live.turn();
  t.same(
    rest.slice(0, -1).map(({ type, delta, input }) => [type, delta ?? input]),
    [
      ['response.custom_tool_call_input.delta', ' two'],
      ['response.custom_tool_call_input.delta', ' three'],
      ['response.custom_tool_call_input.done', 'one two three'],
      ['response.output_item.done', undefined],
    ],
  );

  app.models.enqueue({ toolCalls: [{ name: 'apply_patch', arguments: ['{"input":"one', ' two"}'] }] });
  const body = { input: 'Go', tools: [patch], stream: true };
  const key = { 'idempotency-key': 'custom-tools' };
  const texts = [(await respond(app, body, key)).text, (await respond(app, body, key)).text];
  const seen = texts.map((text) => eventsIn(text).map(({ type }) => type));
  t.same(new Set(seen[1]), new Set(seen[0]));
  t.same(...(texts.map((text) => terminal(eventsIn(text)).response?.output) as [unknown, unknown]));
});

t.test('CL-2 CL-4 CL-5 what has no effect is named, once per request', async (t) => {
  const fields = {
    input: [user('Hi'), { type: 'program', of: 'tomorrow' }],
    tools: [f('read'), { type: 'web_search', external_web_access: true }, { type: 'mcp', server_label: 'x' }],
    client_metadata: { a: 1 },
    prompt_cache_key: 'k',
    prompt_cache_options: { ttl: '1h' },
    include: ['reasoning.encrypted_content'],
    service_tier: 'priority',
    text: { verbosity: 'low' },
    reasoning: { effort: 'low', summary: 'auto', context: 'auto' },
    store: false,
  };
  const { status, headers } = await respond(app, fields);
  t.equal(status, 200);
  const named = [
    'client_metadata',
    'prompt_cache_options',
    'service_tier',
    'reasoning.context',
    'tools.1.web_search',
    'tools.2.mcp',
    'input.1.program',
  ];
  t.same(headers.get('x-ignored-params')?.split(', '), named);
  t.match(app.asked, { prompt_cache_key: 'k', reasoning_effort: 'low', verbosity: 'low' });

  const live = await LiveSocket.open(t, app, { path: '/v1/responses?events=svc' });
  live.create({ model: 'assistant', ...fields });
  const events = await live.turn();
  t.match(events[2], { type: 'svc:ignored_params', sequence_number: 2, params: named });
  t.equal(events.filter(({ type }) => type === 'svc:ignored_params').length, 1);
  const plain = await LiveSocket.open(t, app);
  plain.create({ model: 'assistant', ...fields });
  t.notOk((await plain.turn()).some(({ type }) => type.startsWith('svc:')));
  const lines = app.started.logs.filter(({ msg, ignored_params }) => msg === 'response' && ignored_params).slice(-2);
  t.same(
    lines.map((line) => line.ignored_params),
    [named, named],
  );
});

t.test('CL-6 the tokens of a request are estimated without asking a model', async (t) => {
  const count = async (body: object) => {
    const reply = await app.request('POST', '/v1/responses/input_tokens', {}, { model: 'assistant', ...body });
    t.match(reply, { status: 200, body: { object: 'response.input_tokens', input_tokens: Number } });
    return (reply.body as { input_tokens: number }).input_tokens;
  };
  const { id } = responseIn(await respond(app, { input: 'word '.repeat(800) }));
  const asked = app.models.requests.length;
  const short = await count({ input: 'Hi' });
  t.ok(short > 0 && short < 20, `${short} tokens`);
  const long = await count({ input: 'word '.repeat(400) });
  t.ok(long > 500 && long < 600, `${long} tokens`);
  t.ok((await count({ input: 'Hi', tools: [f('read')] })) > short);
  t.ok((await count({ input: 'Hi', previous_response_id: id })) > 2000, 'with its question and the answer');
  t.equal(app.models.requests.length, asked);
  const refused = await app.request('POST', '/v1/responses/input_tokens', {}, { model: 'assistant' });
  t.match(refused, { status: 400, body: { error: { param: 'input' } } });
});

t.test('CL-7 a session takes a result once, also if the client sends it again with its next message', async (t) => {
  app.models.enqueue({ toolCalls: [{ name: 'read', arguments: {} }] }, { text: 'Read.' });
  const body = { conversation: 'repeats', tools: [f('read')] };
  const { output } = responseIn(await respond(app, { ...body, input: 'Go' }));
  const result = { type: 'function_call_output', call_id: output[0]?.call_id, output: 'x' };
  await respond(app, { ...body, input: [result] });
  t.equal((await respond(app, { ...body, input: [result, user('And now?')] })).status, 200);
  t.same(
    app.asked.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'user'],
  );
  const never = { ...result, call_id: 'never' };
  t.match(await respond(app, { ...body, input: [never, user('x')] }), {
    status: 400,
    body: { error: { param: 'input[0].call_id' } },
  });
  const again = await respond(app, { ...body, input: [result] });
  t.match(again, {
    status: 400,
    body: { error: { param: 'input[0].call_id', message: /already has[\s\S]* or send a new message/ } },
  });
});

t.test('a message of the user between calls and their results is accepted, and follows them', async (t) => {
  const roles = () => app.asked.messages.map(({ role }) => role);
  const tools = [f('read')];
  const calls = ['a', 'b'].map((id) => ({ id, name: 'read', arguments: {} }));
  app.models.enqueue({ toolCalls: calls });
  const first = responseIn(await respond(app, { input: [user('Go')], tools }));
  const results = first.output.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: String(call_id) }));
  const order = ['user', 'assistant', 'tool', 'tool', 'user'];
  const whole = [user('Go'), ...first.output, user('Stop'), ...results];
  t.equal((await respond(app, { input: whole, tools, store: false })).status, 200);
  t.same(roles(), order);
  const [one, two] = results;
  t.equal((await respond(app, { input: [one, user('Stop'), two], tools, previous_response_id: first.id })).status, 200);
  t.same(roles(), order);
  t.same(
    app.asked.messages.slice(2).map(({ content }) => content),
    [one?.output, two?.output, 'Stop'],
  );
});

t.test('bad input is refused where it is, or left out by name', async (t) => {
  const errorOf = async (body: object) => (await respond(app, { input: 'x', store: false, ...body })).body;
  const tools = [f('a__b'), { type: 'namespace', name: 'a', tools: [f('b')] }];
  t.match(await errorOf({ tools }), { error: { param: 'tools[1].tools[0].name', code: 'invalid_value' } });
  t.match(await errorOf({ tools: Array.from({ length: 600 }, (_, i) => f(`f${i}`)) }), { error: { param: 'tools' } });
  t.match(await errorOf({ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }), {
    error: { param: 'tool_choice.type' },
  });
  const result = { type: 'custom_tool_call_output', call_id: 'never', output: 'x' };
  t.match(await errorOf({ input: [user('x'), result] }), { error: { type: 'invalid_request_error', param: 'input[1]' } });
  const call = { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: 'x' };
  t.match(await errorOf({ input: [user('x'), call] }), { error: { type: 'invalid_request_error', param: 'input[1]' } });
  const asked = app.models.requests.length;
  t.match(await errorOf({ input: [{ type: 'dream' }] }), { error: { param: 'input', message: /no message for the model/ } });
  t.equal(app.models.requests.length, asked);
  const many = Array.from({ length: 200 }, (_, i) => f(`f${i}`));
  const long = Array.from({ length: 3001 }, (_, i) => ({ role: i % 2 ? 'assistant' : 'user', content: 'x' }));
  t.equal((await respond(app, { input: long, tools: many, store: false })).status, 200);
  t.equal(offered().length, 200);
  t.equal(app.asked.messages.length, 3001);
});

for (const [surface, create] of Object.entries(SURFACES)) {
  t.test(`CL-4 ${surface}: a compaction_trigger is answered with a summary that a later request may send`, async (t) => {
    app.models.enqueue({ text: ['They ', 'met.'] }, { text: ['Yes.'] });
    const tools = [f('read')];
    const { status, output } = await create(t, { input: [user('Hello'), { type: 'compaction_trigger' }], tools });
    t.equal(status, 'completed');
    t.match(output, [{ type: 'compaction', encrypted_content: /./ }]);
    t.notMatch(JSON.stringify(output), 'They met');
    t.equal(app.asked.tools, undefined, 'a summary needs no tools');
    await create(t, { input: [...output, user('And then?')], tools });
    t.match(app.asked.messages.at(-1)?.content, /They met\.[\s\S]*And then\?$/);
  });
}

t.test('CL-4 a summary on a socket is what the next request continues; a session makes its own', async (t) => {
  const live = await LiveSocket.open(t, app);
  const first = await live.ask({ model: 'assistant', store: false, input: 'Hello' });
  app.models.enqueue({ text: 'They met.' });
  const trigger = { input: [{ type: 'compaction_trigger' }], store: false, model: 'assistant' };
  const { id } = await live.ask({ ...trigger, previous_response_id: first.id });
  await live.ask({ model: 'assistant', store: false, previous_response_id: id, input: 'And then?' });
  t.equal(app.asked.messages.length, 1);
  t.match(app.asked.messages[0]?.content, /They met\.[\s\S]*And then\?$/);
  t.match(await live.refuse({ ...trigger, conversation: 'c' }), { error: { param: 'input[0].type', message: /history/ } });
  app.models.enqueue({ text: ' ' });
  const key = { 'idempotency-key': 'compaction' };
  const input = [user('Hello'), { type: 'compaction_trigger' }];
  t.match(await respond(app, { input }, key), { status: 502, body: { error: { message: /empty summary/ } } });
  app.models.enqueue({ text: 'They met.' });
  const { status, text } = await respond(app, { input }, key);
  t.equal(status, 200);
  t.notMatch(text, 'They met');
});

/** The error of a response that failed, to a client of this name. */
async function errorOf(t: Tap, agent: string, isSocket: boolean): Promise<unknown> {
  const headers = { 'user-agent': agent };
  const body = { model: 'assistant', input: 'Hi', store: false };
  if (!isSocket) return terminal(eventsIn((await respond(app, { ...body, stream: true }, headers)).text)).response?.error;
  const live = await LiveSocket.open(t, app, { headers });
  return (await live.ask(body)).error;
}

for (const isSocket of [false, true]) {
  t.test(`CL-8 ${isSocket ? 'WebSocket' : 'HTTP'}: a failure says whether a repeated request may succeed`, async (t) => {
    const codex = 'codex_exec/0.169.0 (Debian 12.0.0; x86_64)';
    const other = 'openai/7';
    app.models.enqueue({ status: 429, retryAfter: 30 });
    t.match(await errorOf(t, codex, isSocket), { code: 'rate_limit_exceeded', message: /Please try again in 30s\.$/ });
    app.models.enqueue({ status: 503, retryAfter: 20 });
    t.match(await errorOf(t, codex, isSocket), { code: 'slow_down', message: /Please try again in 20s\.$/ });
    const broken = { text: ['Half'], cut: { afterEvents: 2 } };
    app.models.enqueue(broken, broken);
    t.match(await errorOf(t, codex, isSocket), { code: 'model_failed', message: /The model connection failed/ });
    t.match(await errorOf(t, other, isSocket), { code: 'model_failed', message: /The model connection failed/ });
    app.models.enqueue({ status: 401 });
    t.match(await errorOf(t, codex, isSocket), { code: 'invalid_prompt' }, 'a repeat would fail again');
    const long = { status: 400, body: { error: { message: 'too long', code: 'context_length_exceeded' } } };
    app.models.enqueue(long);
    t.match(await errorOf(t, codex, isSocket), { code: 'context_length_exceeded' });
  });
}
