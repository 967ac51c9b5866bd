import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerOf, errorOf, type Reply, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { toolFixtures, WITH_TOOLS } from '../../support/with-tools.js';

const FAST = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
`;

/** Memory, but an operation fails in the session that is called like it. */
const STORE = `
  import { definePlugin } from '@plugboard/kernel';
  import memory from '@plugboard/store-memory';
  const frail = (store) => new Proxy(store, {
    get: (store, operation) => {
      if (typeof store[operation] !== 'function') return store[operation];
      return async (id, ...rest) => {
        if (id?.key === operation) throw new Error('disk /dev/secret is full');
        return store[operation](id, ...rest);
      };
    },
  });
  export default definePlugin({
    ...memory, name: 'frail-store',
    register: (ctx) => memory.register({ ...ctx, contribute: (point, store) => ctx.contribute(point, frail(store)) }),
  });
`;

/** Frames as Server-Sent Events, but breaks before it can say that nothing follows. */
const ENCODER = `
  import { definePlugin } from '@plugboard/kernel';
  import { StreamEncoders } from '@plugboard/transport-chat-completions';
  export default definePlugin({
    name: 'frail-encoder', apiVersion: 1, summary: 'Cannot end', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(StreamEncoders, {
      headers: { 'content-type': 'text/event-stream; charset=utf-8' },
      before: 'data: ', after: '\\n\\n', keepAliveEvery: 15000, comment: (text) => ': ' + text + '\\n\\n',
      get done() { throw new Error('no end in sight'); },
    }, 'sse'),
  });
`;

const FAILED: Readonly<Record<string, string>> = {
  load: 'The session store failed to answer.',
  begin: 'The session store failed; the turn was not run.',
  commit:
    'The session store failed, and it is unknown whether the request was stored. Read the session before you send it again.',
};

t.test('C-167 C-168 a failing session store gives a 502, or an error frame instead of the end', async (t) => {
  const yaml = `${TRANSPORTS}${FAST}agents: { assistant: { model: fast } }\nsessions: { use: ./store.mjs }\n`;
  const server = await TestServer.start(t, yaml, { files: { 'store.mjs': STORE } });
  for (const session_id of ['load', 'begin', 'commit']) {
    const whole = await server.chat(saying('Hi', { session_id }));
    t.equal(whole.status, 502);
    t.strictSame(whole.body, {
      error: { message: FAILED[session_id], type: 'svc_error' },
    });
    t.equal(whole.headers.get('x-should-retry'), 'false');
  }
  t.equal((await server.chat(saying('Hi', { session_id: 'load', stream: true }))).status, 502);
  const { text, errors, done, chunks } = await server.stream(saying('Hi', { session_id: 'commit' }));
  t.strictSame([text, errors.length, done], ['Hi', 1, true]);
  t.ok(
    chunks.every(({ choices }) => choices[0]?.finish_reason === null),
    'a turn that was not stored has failed',
  );
  t.equal(answerOf(await server.chat(saying('Hi', { session_id: 'well' }))), 'Hi');
  t.match(JSON.stringify(server.started.logs), 'disk /dev/secret is full', 'the log has the reason');
});

t.test('C-109 a stream whose error frame cannot be sent is destroyed, never ended', async (t) => {
  const yaml = `${TRANSPORTS.replace('sse: {}', 'sse: { use: ./encoder.mjs }')}${FAST}agents: { assistant: { model: fast } }\n`;
  const server = await TestServer.start(t, yaml, { files: { 'encoder.mjs': ENCODER } });
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Hi', gate.promise] });
  const stream = await server.open(saying('Hi'));
  await stream.until('"content":"Hi"');
  gate.resolve();
  await t.rejects(stream.end(), { message: 'terminated' });
  t.notMatch(stream.received, /finish_reason":"stop"|\[DONE\]/);
  t.equal(answerOf(await server.chat(saying('Hi'))), 'Hi', 'whole answers need no encoder');
});

t.test('C-167 a tool’s failure goes to the model, and a budget ends a turn successfully', async (t) => {
  const server = await TestServer.start(t, `${WITH_TOOLS}  brief: { model: fast, tools: [clock], maxSteps: 2 }\n`, toolFixtures);
  server.models.enqueue(
    {
      toolCalls: [
        { id: 'a', name: 'files__read_text_file', arguments: { path: 'no-such-file.txt' } },
        { id: 'b', name: 'files__read_text_file', arguments: { path: 7 } },
        { id: 'c', name: 'files__read_text_file', arguments: '{"path":' },
        { id: 'd', name: 'files__read_text_file', arguments: { path: '../../../../etc/passwd' } },
        { id: 'e', name: 'no_such_tool', arguments: {} },
        { id: 'f', name: 'clock', arguments: { timeZone: 'Mars/Phobos' } },
      ],
    },
    { text: 'I could not find it.' },
  );
  t.equal(answerOf(await server.chat(saying('Read it'))), 'I could not find it.');
  const results = server.asked.messages.filter(({ role }) => role === 'tool');
  t.strictSame(
    results.map(({ tool_call_id }) => tool_call_id),
    server.asked.messages
      .flatMap((message) => (message as { tool_calls?: { id: string }[] }).tool_calls ?? [])
      .map(({ id }) => id),
  );
  t.match(
    results.map(({ content }) => content),
    [/ENOENT/, /path/, /JSON/, /denied|outside/i, /no_such_tool/, /Mars\/Phobos/],
  );

  for (const said of [undefined, 'Let me see.']) {
    const step = { ...(said && { text: said }), toolCalls: [{ name: 'clock', arguments: {} }] };
    server.models.enqueue(step, step, step, step);
    const whole = await server.chat(saying('What time is it?', { model: 'brief' }));
    t.match(whole.body, {
      choices: [{ message: { content: said ?? /limit of 2 model calls/ }, finish_reason: 'length' }],
    });
    const streamed = await server.stream(saying('What time is it?', { model: 'brief' }));
    t.equal(streamed.chunks.at(-1)?.choices[0]?.finish_reason, 'length');
    t.match(streamed.text, said ?? /limit of 2 model calls/);
    t.ok(streamed.done);
  }
});

t.test('C-166 every error of a request is an object with four keys', async (t) => {
  const server = await TestServer.start(t, `${TRANSPORTS}${FAST}agents: { assistant: { model: fast } }\n`);
  const replies: Reply[] = [
    await server.chat('{'),
    await server.chat(saying('Hi', { n: 2 })),
    await server.chat(saying('Hi', { user: 'x'.repeat(513) })),
    await server.chat(saying('Hi'), { 'x-session-id': 'ÿ' }),
    await server.chat({ model: 'assistant', messages: [{ role: 'system', content: 'x' }], session_id: 'a' }),
    await server.chat(saying('Hi'), { 'content-type': 'text/plain' }),
    await server.get('/v1/nowhere'),
    await server.get('/v1/models/nobody'),
    await server.get('/v1/chat/completions'),
    await server.chat('x'.repeat(20 * 2 ** 20 + 1)),
    await server.chat(`{"a":${'['.repeat(100)}${']'.repeat(100)}}`),
  ];
  t.strictSame(
    replies.map(({ status }) => status),
    [400, 400, 400, 400, 400, 400, 404, 404, 405, 413, 400],
  );
  for (const reply of replies) {
    t.strictSame(Object.keys(errorOf(reply)), ['message', 'type', 'param', 'code']);
    t.equal(errorOf(reply).type, 'invalid_request_error');
  }
});

t.test('C-169 a reached limit names the wait, and without limits there are no limit headers', async (t) => {
  const limits = 'limits: { runningTurns: 2, queuedTurns: 0, queuedPerSession: 0 }\n';
  const server = await TestServer.start(t, `${TRANSPORTS}${FAST}agents: { assistant: { model: fast } }\n${limits}`);
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ before: gate.promise, text: 'One.' }, { before: gate.promise, text: 'Two.' });
  const one = server.chat(saying('One', { session_id: 'busy' }));
  await server.models.received(1);

  for (const stream of [false, true]) {
    const reply = await server.chat(saying('More', { session_id: 'busy', stream }));
    t.equal(reply.status, 409);
    t.match(reply.headers.get('retry-after'), /^[1-9][0-9]?$/);
    t.match(errorOf(reply), { type: 'invalid_request_error', param: null, code: 'session_busy' });
  }
  const two = server.chat(saying('Two'));
  await server.models.received(2);
  for (const stream of [false, true]) {
    const reply = await server.chat(saying('Three', { stream }));
    t.equal(reply.status, 503);
    t.match(reply.headers.get('retry-after'), /^[1-9][0-9]?$/);
    t.match(errorOf(reply), { type: 'server_error', param: null, code: 'overloaded' });
  }
  gate.resolve();
  t.strictSame([answerOf(await one), answerOf(await two)], ['One.', 'Two.']);
  t.equal(server.models.requests.length, 2);
  const { headers } = await server.chat(saying('And now?'));
  t.notOk([...headers.keys()].some((name) => name.startsWith('x-ratelimit')));
});

t.test('C-170 a stopping server refuses new turns and lets running ones finish', async (t) => {
  const server = await TestServer.start(t, `${TRANSPORTS}${FAST}agents: { assistant: { model: fast } }\n`);
  const { url } = server;
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Nearly', gate.promise, ' done.'] }, { before: gate.promise, text: 'Done.' });
  const stream = await server.open(saying('Tell me'));
  await stream.until('Nearly');
  const whole = server.chat(saying('Tell me'));
  await server.models.received(2);

  const stopping = server.stop();
  await eventually(async () => (await server.get('/readyz')).status === 503);
  t.match((await server.get('/health')).body, { status: 'ok', ready: false });
  for (const fields of [{}, { stream: true }]) {
    const refused = await server.chat(saying('One more', fields));
    t.equal(refused.status, 503);
    t.match(refused.headers.get('retry-after'), /^[1-9][0-9]?$/);
    t.equal(refused.headers.get('connection'), 'close');
    t.match(errorOf(refused), { type: 'server_error', param: null, code: 'draining' });
  }
  t.equal((await server.get('/v1/models')).status, 200);
  gate.resolve();
  t.match(await stream.end(), { text: 'Nearly done.', done: true, errors: [] });
  t.equal(answerOf(await whole), 'Done.');
  await stopping;
  await t.rejects(fetch(url), 'the port is closed');
});

t.test('C-170 turns longer than `drain` end with an error', async (t) => {
  const clock = new ManualClock();
  const server = await TestServer.start(t, `${TRANSPORTS}${FAST}agents: { assistant: { model: fast } }\n`, { clock });
  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  server.models.enqueue({ text: ['Endless', gate.promise] }, { before: gate.promise });
  const stream = await server.open(saying('Tell me'));
  await stream.until('Endless');
  const whole = server.chat(saying('Tell me'));
  await server.models.received(2);
  const stopping = server.stop();
  await eventually(async () => (await server.get('/readyz')).status === 503);
  clock.advance(30_000);
  t.match(await stream.end(), {
    text: 'Endless',
    errors: [{ message: 'The server stopped before the answer was complete.', type: 'svc_error' }],
    done: true,
  });
  t.equal((await whole).status, 502);
  await t.rejects(stopping, { message: /2 replies were still running after 30 s/ });
});
