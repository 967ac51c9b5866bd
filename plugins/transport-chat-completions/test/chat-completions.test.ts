import type { AgentEvent, Principal } from '@plugboard/kernel';
import { type Conversation, type Failure, type FailureCode, NO_USAGE } from '@plugboard/kernel/contracts';
import t from 'tap';
import { chunksOf, errorOf, finished, HI, NOW, startRoute } from './support/route.js';

const step = { type: 'step', step: 1, connection: 'fast' } as const;

t.test('the route is a POST with a JSON body that requires the scope chat', async (t) => {
  const { route } = startRoute();
  t.match(route, { method: 'POST', path: '/v1/chat/completions', access: ['chat'], body: 'json', startsWork: true });
});

t.test('C-050 C-053 C-062 the turn receives the fields of the request', async (t) => {
  const { ask, turns, resolved, gone } = startRoute({ rawHeaders: ['X-Session-Id', 's1'] });
  await ask({
    messages: [{ role: 'developer', content: [{ type: 'text', text: 'Be short.' }] }, ...HI],
    user: 'ann',
    safety_identifier: 'x',
    temperature: 0.5,
    metadata: { run: '7' },
  });
  t.match(resolved, [{ name: 'assistant', principal: { project: 'default' } }]);
  t.match(turns, [
    {
      target: { name: 'assistant' },
      principal: { project: 'default' },
      messages: [{ role: 'system', content: 'Be short.' }, ...HI],
      session: { key: 'ann:s1' },
      clientTools: [],
      params: { temperature: 0.5 },
      incremental: false,
      requestId: /^req_/,
      metadata: { run: '7' },
    },
  ]);
  t.equal(turns[0]?.signal, gone.signal);
});

t.test('C-120 a request without a key is stateless', async (t) => {
  const { ask, turns } = startRoute();
  await ask();
  t.match(turns, [{ session: undefined, messages: HI, metadata: {}, params: {} }]);
});

t.test('C-133 a request and its retry have one fingerprint, of caller and bytes', async (t) => {
  const fingerprint = async (fields: Record<string, unknown>, options: Parameters<typeof startRoute>[0] = {}) => {
    const { ask, turns } = startRoute(options);
    await ask(fields);
    return turns[0]?.session?.fingerprint;
  };
  const first = await fingerprint({ user: 'ann' });
  t.ok(first);
  t.equal(await fingerprint({ user: 'ann' }), first);
  t.not(await fingerprint({ user: 'bob' }), first);
  t.not(await fingerprint({ user: 'ann', temperature: 0.5 }), first);
});

t.test('S-44 a request joins a turn of the same caller only, identified by id and not by name', async (t) => {
  const fingerprint = async (who: Partial<Principal>) => {
    const { ask, turns } = startRoute({ principal: { project: 'default', scopes: ['chat'], ...who } });
    await ask({ user: 'ann' });
    return turns[0]?.session?.fingerprint;
  };
  const first = await fingerprint({ token: 'jwt:ann', tokenId: 'jwt_1' });
  t.ok(first);
  t.equal(await fingerprint({ token: 'renamed', tokenId: 'jwt_1' }), first);
  t.not(await fingerprint({ token: 'jwt:ann', tokenId: 'jwt_2' }), first);
  t.equal(await fingerprint({ token: 'jwt:ann', subject: 'ann' }), undefined, 'without an id there is no joining');
});

const CONVERSATION: Conversation = {
  id: { project: 'default', agent: 'assistant', key: 'ann:s1' },
  conversation: 'conv_1',
  createdAt: NOW,
  updatedAt: NOW,
  turns: 1,
  bytes: 100,
  metadata: {},
  status: 'idle',
};

t.test('an opaque id as session_id selects the session’s key, and user is ignored', async (t) => {
  const asked: unknown[] = [];
  const conversation = async (id: string, { project }: Principal) => {
    asked.push([id, project]);
    return CONVERSATION;
  };
  const { ask, turns, notes } = startRoute({ conversation });
  const reply = await ask({ session_id: 'conv_1', user: 'bob' });
  t.strictSame(asked, [['conv_1', 'default']]);
  t.match(turns, [{ session: { key: 'ann:s1', user: undefined } }]);
  t.equal(reply.headers?.['x-ignored-params'], 'user');
  const byKey = startRoute();
  await byKey.ask({ session_id: 'ann:s1' });
  t.equal(notes.session_hash, byKey.notes.session_hash, 'it is the same session');
  const byHeader = startRoute({ conversation, rawHeaders: ['X-Session-Id', 'conv_1'] });
  await byHeader.ask();
  t.match(byHeader.turns, [{ session: { key: 'ann:s1' } }]);
});

t.test('an unknown opaque id gets a 404, one of another agent a 400 that names both', async (t) => {
  const nowhere = await errorOf(startRoute().ask({ session_id: 'conv_1' }));
  t.equal(nowhere.status, 404);
  t.match(nowhere.body.error, { code: 'conversation_not_found', type: 'invalid_request_error' });
  const conversation = async () => ({ ...CONVERSATION, id: { ...CONVERSATION.id, agent: 'billing' } });
  const { ask, turns } = startRoute({ conversation });
  const other = await errorOf(ask({ session_id: 'conv_1' }));
  t.equal(other.status, 400);
  t.match(other.body.error, { param: 'session_id', code: 'invalid_value', message: /'billing'.*'assistant'/ });
  t.match((await errorOf(startRoute({ conversation, rawHeaders: ['X-Session-Id', 'conv_1'] }).ask())).body.error, {
    param: 'X-Session-Id',
  });
  t.strictSame(turns, []);
  const broken = startRoute({
    conversation: async () => {
      throw new TypeError('a defect');
    },
  });
  await t.rejects(broken.ask({ session_id: 'conv_1' }), TypeError);
});

t.test('the session receives the user', async (t) => {
  const { ask, turns } = startRoute();
  await ask({ user: 'ann' });
  await ask({ user: 'ann', session_id: 's1' });
  await ask({ session_id: 's1' });
  t.strictSame(
    turns.map(({ session }) => [session?.key, session?.user]),
    [
      ['ann', 'ann'],
      ['ann:s1', 'ann'],
      ['s1', undefined],
    ],
  );
});

t.test('X-Session-Busy sets the busy mode, and an unknown value gets a 400', async (t) => {
  for (const busy of ['enqueue', 'reject', 'interrupt'] as const) {
    const { ask, turns } = startRoute({ rawHeaders: ['X-Session-Busy', busy] });
    await ask({ user: 'ann' });
    t.equal(turns[0]?.session?.busy, busy);
  }
  const { post, turns } = startRoute({ rawHeaders: ['X-Session-Busy', 'queue'] });
  const error = await errorOf(post({ model: 'a', messages: HI, user: 'ann' }));
  t.match(error, { status: 400, body: { error: { param: 'X-Session-Busy', code: 'invalid_value' } } });
  t.equal(turns.length, 0);
});

t.test('C-136 sessionFrom limits the sources of a key', async (t) => {
  const { ask, turns } = startRoute({ config: { sessionFrom: ['session_id'] }, rawHeaders: ['X-Session-Id', 's1'] });
  const reply = await ask({ user: 'ann' });
  t.equal(turns[0]?.session, undefined);
  t.match(reply.headers, { 'x-ignored-params': 'user' });
});

t.test('C-045 an invalid request runs no turn and resolves no agent', async (t) => {
  const { post, turns, resolved, notes } = startRoute();
  for (const body of [
    [],
    {},
    { model: 'a' },
    { model: 'a', messages: [{ role: 'user' }] },
    { model: 'a', messages: HI, session_id: '\0' },
  ]) {
    t.equal((await errorOf(post(body))).status, 400);
  }
  t.same([turns, resolved, notes], [[], [], {}]);
});

t.test('C-071 the answer repeats the requested name', async (t) => {
  for (const model of ['team/agent one', 'Größe', '😀', ' x ']) {
    const { post } = startRoute();
    t.match((await post({ model, messages: HI })).body, { model });
    const { post: stream } = startRoute();
    const reply = await stream({ model, messages: HI, stream: true });
    for (const frames of await chunksOf(reply)) t.ok(frames.includes(`"model":${JSON.stringify(model)},`));
  }
});

t.test('C-068 the default agent answers under the requested name', async (t) => {
  const { post, turns, notes } = startRoute();
  t.match((await post({ model: 'unheard-of', messages: HI })).body, { model: 'unheard-of' });
  t.equal(turns[0]?.target.name, 'assistant');
  t.match(notes, { agent: 'assistant' });
});

t.test('C-066 a raw model receives the caller’s tools and parameters', async (t) => {
  const { ask, turns } = startRoute({ target: { kind: 'model', name: 'fast', clientTools: 'passthrough' } });
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const reply = await ask({ tools, tool_choice: 'required', logit_bias: { 1: 1 } });
  t.match(turns, [{ clientTools: [{ name: 'f' }], params: { tool_choice: 'required', logit_bias: { 1: 1 } } }]);
  t.same(reply.headers, { 'x-agent': 'fast', 'x-model-connection': 'fast' });
});

t.test('C-069 a name that does not resolve gets a 400 with two keys', async (t) => {
  const { ask, turns } = startRoute({ resolution: { kind: 'unknown' } });
  for (const stream of [false, true]) {
    const error = await errorOf(ask({ stream }));
    t.equal(error.status, 400);
    t.same(Object.keys(error.body.error), ['message', 'type']);
    t.equal(error.body.error.type, 'svc_error');
  }
  t.same(turns, []);
});

t.test('C-070 an agent out of scope gets a 403 with a constant message', async (t) => {
  const { post, turns } = startRoute({ resolution: { kind: 'forbidden' } });
  const errors = await Promise.all(['a', 'b'].map((model) => errorOf(post({ model, messages: HI }))));
  for (const error of errors) t.match(error, { status: 403, body: { error: { type: 'svc_error' } } });
  t.equal(errors[0]?.message, errors[1]?.message);
  t.same(turns, []);
});

t.test('C-055 images reach a connection that accepts them and are refused otherwise', async (t) => {
  const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.org/a.png' } }] }];
  const seeing = startRoute();
  await seeing.ask({ messages });
  t.same(seeing.turns[0]?.messages, messages);
  const blind = startRoute({ target: { input: ['text'] } });
  t.match(await errorOf(blind.ask({ messages })), { status: 400, body: { error: { param: 'messages[0].content[0]' } } });
  t.same(blind.turns, []);
});

t.test('C-059 C-060 an agent that ignores client tools drops them and refuses forced calls', async (t) => {
  const { ask, turns } = startRoute();
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const reply = await ask({ tools, tool_choice: 'auto', parallel_tool_calls: false });
  t.match(reply.headers, { 'x-ignored-params': 'tools, parallel_tool_calls' });
  t.same(turns[0]?.clientTools, []);
  t.match(await errorOf(ask({ tools, tool_choice: 'required' })), { status: 400, body: { error: { param: 'tool_choice' } } });
  t.equal(turns.length, 1);
});

t.test('C-112 a request refused before the turn gets a JSON error, even with stream: true', async (t) => {
  const { ask, turns } = startRoute();
  t.match(await errorOf(ask({ stream: true, temperature: 3 })), { status: 400 });
  t.same(turns, []);
});

t.test('without a stream encoder, stream: true is refused with the name of the missing plugin', async (t) => {
  const { ask, turns } = startRoute({ streams: false });
  const error = await errorOf(ask({ stream: true }));
  t.match(error, { status: 400, body: { error: { type: 'invalid_request_error', param: 'stream', code: 'unsupported_value' } } });
  t.match(error.message, /@plugboard\/transport-sse/);
  t.same(turns, []);
  t.equal((await ask({ stream: false })).status, 200);
});

t.test('the headers name the connection that answered and what was ignored', async (t) => {
  const batches = [
    [step],
    [
      { ...step, step: 2, connection: 'spare' },
      { type: 'text', text: 'Hi' },
    ],
    [finished],
  ] satisfies AgentEvent[][];
  t.same((await startRoute({ batches }).ask({ top_k: 4 })).headers, {
    'x-agent': 'assistant',
    'x-ignored-params': 'top_k',
    'x-model-connection': 'spare',
  });
  t.match((await startRoute({ batches }).ask({ stream: true, top_k: 4 })).headers, {
    'content-type': /event-stream/,
    'x-ignored-params': 'top_k',
    'x-model-connection': 'spare',
  });
  t.same((await startRoute({ batches: [[finished]] }).ask()).headers, { 'x-agent': 'assistant' });
  const foreign = [[{ ...step, connection: '模型\n' }], [finished]] satisfies AgentEvent[][];
  t.match((await startRoute({ batches: foreign }).ask()).headers, { 'x-model-connection': '%E6%A8%A1%E5%9E%8B%0A' });
});

t.test('the turn knows whether its answer is streamed', async (t) => {
  const { ask, turns } = startRoute();
  await ask({ stream: true });
  await ask({ stream: false });
  t.same(
    turns.map(({ incremental }) => incremental),
    [true, false],
  );
});

t.test('a failed turn gets its status, and the access log has the reason', async (t) => {
  const cases: [FailureCode, number, string][] = [
    ['model_failed', 502, 'agent_error'],
    ['timed_out', 502, 'timeout'],
    ['stopped', 502, 'draining'],
    ['abandoned', 502, 'cancelled_by_client'],
    ['draining', 503, 'draining'],
    ['session_busy', 409, 'client_error'],
    ['invalid_request', 400, 'client_error'],
  ];
  for (const [code, status, outcome] of cases) {
    const failure: Failure = { code, message: 'Why.', toolsRan: false };
    const { ask, notes } = startRoute({ batches: [[{ type: 'failed', failure }]] });
    t.match(await errorOf(ask()), { status, message: 'Why.' });
    t.match(notes, { outcome });
  }
});

t.test('C-132 a failed turn of a session discourages retries', async (t) => {
  const failure: Failure = { code: 'model_failed', message: 'Why.', toolsRan: false };
  for (const stream of [false, true]) {
    const { ask } = startRoute({ batches: [[{ type: 'failed', failure }]] });
    t.match((await errorOf(ask({ stream, user: 'ann' }))).headers, { 'x-should-retry': 'false' });
  }
});

t.test('the access log has the turn and a hash of the session key', async (t) => {
  const call = {
    type: 'tool-call',
    id: 'c',
    name: 'clock',
    arguments: '{}',
    tool: { entry: 'tools.clock', name: 'clock' },
  } as const;
  const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
  const counted = { type: 'usage', usage } as const;
  const second = { ...step, step: 2 };
  const batches = [[step, counted, call], [second, counted], [{ ...finished, usage }]] satisfies AgentEvent[][];
  for (const stream of [false, true]) {
    const { ask, notes } = startRoute({ batches });
    const reply = await ask({ stream, user: 'ann' });
    if (stream) await chunksOf(reply);
    t.match(notes, {
      agent: 'assistant',
      stream,
      steps: 2,
      tool_calls: 1,
      input_tokens: 10,
      output_tokens: 5,
      usage_known: undefined,
      finish_reason: undefined,
      outcome: undefined,
    });
    t.match(notes.session_hash, /^[0-9a-f]{16}$/);
    t.notMatch(JSON.stringify(notes), /ann/);
  }
  for (const stream of [false, true]) {
    const partly = startRoute({ batches: [[step, call, second, counted, counted, { ...finished, usage }]] });
    const reply = await partly.ask({ stream });
    if (stream) await chunksOf(reply);
    t.match(partly.notes, { input_tokens: 10, usage_known: false }, 'one of two model calls was not counted');
  }
  const { ask, notes } = startRoute({ batches: [[step, { ...finished, usage: NO_USAGE, rawReason: 'SAFETY' }]] });
  await ask();
  t.match(notes, { session_hash: undefined, usage_known: false, finish_reason: 'SAFETY' });
});
