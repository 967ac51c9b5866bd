import { request as httpRequest, type IncomingMessage } from 'node:http';
import t, { type Test } from 'tap';
import { type ChatRequest, completionOf, eventsOf, ModelServer } from '../../src/model-server/model-server.js';

const HELLO = { model: 'm', messages: [{ role: 'user', content: 'Hello there, you' }] };

async function start(t: Test): Promise<ModelServer> {
  const server = await ModelServer.start();
  t.teardown(() => server.close());
  return server;
}

function ask(server: ModelServer, body: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Response> {
  return fetch(`${server.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ ...HELLO, ...body }),
    headers: { 'content-type': 'application/json', 'x-test': 'yes' },
    signal: signal ?? null,
  });
}

async function streamed(server: ModelServer, body: Record<string, unknown> = {}): Promise<Record<string, never>[]> {
  const response = await ask(server, { stream: true, ...body });
  const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '');
  return frames.map((frame) => (frame === 'data: [DONE]' ? frame : JSON.parse(frame.slice('data: '.length))));
}

async function content(response: Response): Promise<string | undefined> {
  const body = (await response.json()) as { choices: { message: { content: string } }[] };
  return body.choices[0]?.message.content;
}

function choice(delta: object, finish_reason: string | null = null) {
  return { choices: [{ index: 0, delta, logprobs: null, finish_reason }] };
}

t.test('without a script it echoes the last user message, as JSON or word by word', async (t) => {
  const server = await start(t);
  const messages = [
    { role: 'user', content: 'first' },
    {
      role: 'user',
      content: [
        { type: 'text', text: '  two ' },
        { type: 'image_url', image_url: { url: 'x' } },
        { type: 'text', text: 'words' },
      ],
    },
    { role: 'assistant', content: 'no' },
  ];
  const whole = await (await ask(server, { messages })).json();
  t.match(whole, {
    object: 'chat.completion',
    model: 'm',
    choices: [{ message: { content: '  two words' }, finish_reason: 'stop' }],
  });

  const events = await streamed(server, { messages });
  t.match(events, [
    choice({ role: 'assistant', content: '' }),
    choice({ content: '  ' }),
    choice({ content: 'two ' }),
    choice({ content: 'words' }),
    choice({}, 'stop'),
    'data: [DONE]',
  ]);
  t.notOk(events.some((event) => 'usage' in Object(event)));

  t.match(await (await ask(server, { messages: [] })).json(), { choices: [{ message: { content: '' } }] });
});

t.test('one description makes the JSON body and the events', async (t) => {
  const server = await start(t);
  server.respond({
    reasoning: ['I ', 'think'],
    text: ['so', ' I ', 'am'],
    refusal: 'No.',
    toolCalls: [
      { name: 'a', arguments: { x: 1 } },
      { id: 'mine', name: 'b', arguments: ['{"y"', ':2}'] },
      { name: 'c', arguments: '{}' },
    ],
    usage: { promptTokens: 7, completionTokens: 9, cachedTokens: 3, cacheWriteTokens: 0, reasoningTokens: 2 },
    headers: { 'x-from': 'script' },
  });
  const usage = {
    prompt_tokens: 7,
    completion_tokens: 9,
    total_tokens: 16,
    prompt_tokens_details: { cached_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const response = await ask(server);
  t.equal(response.headers.get('x-from'), 'script');
  t.match(await response.json(), {
    choices: [
      {
        message: {
          role: 'assistant',
          content: 'so I am',
          refusal: 'No.',
          reasoning_content: 'I think',
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'a', arguments: '{"x":1}' } },
            { id: 'mine', type: 'function', function: { name: 'b', arguments: '{"y":2}' } },
            { id: 'call_3', type: 'function', function: { name: 'c', arguments: '{}' } },
          ],
        },
        finish_reason: 'tool_calls',
      },
    ],
    usage,
  });

  const events = await streamed(server, { stream_options: { include_usage: true } });
  const call = (index: number, id: string, name: string) =>
    choice({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
  const fragment = (index: number, text: string) => choice({ tool_calls: [{ index, function: { arguments: text } }] });
  t.match(events, [
    { ...choice({ role: 'assistant', content: '' }), usage: null },
    choice({ reasoning_content: 'I ' }),
    choice({ reasoning_content: 'think' }),
    choice({ content: 'so' }),
    choice({ content: ' I ' }),
    choice({ content: 'am' }),
    choice({ refusal: 'No.' }),
    call(0, 'call_1', 'a'),
    fragment(0, '{"x":1}'),
    call(1, 'mine', 'b'),
    fragment(1, '{"y"'),
    fragment(1, ':2}'),
    call(2, 'call_3', 'c'),
    fragment(2, '{}'),
    choice({}, 'tool_calls'),
    { choices: [], usage },
    'data: [DONE]',
  ]);
});

t.test('usage is counted in words, or not reported', async (t) => {
  const server = await start(t);
  server.enqueue({ text: 'four words of text' }, { text: 'a b' }, { usage: null }, { usage: null });
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  t.match(await (await ask(server)).json(), { usage });
  t.match((await streamed(server, { stream_options: { include_usage: true } })).at(-2), {
    choices: [],
    usage: { completion_tokens: 2 },
  });
  t.notOk('usage' in Object(await (await ask(server)).json()));
  t.match((await streamed(server, { stream_options: { include_usage: true } })).at(-2), choice({}, 'stop'));
});

t.test('an answer may end without a reason and without [DONE]', async (t) => {
  const server = await start(t);
  server.respond({ text: 'so', finishReason: null, done: false });
  t.match((await streamed(server)).at(-1), choice({ content: 'so' }));
  t.match(await (await ask(server)).json(), { choices: [{ finish_reason: null }] });
});

t.test('a tool call alone has no content', async () => {
  const answer = { toolCalls: [{ name: 'a', arguments: '' }] };
  t.match(await completionOf(answer, HELLO), { choices: [{ message: { content: null } }] });
});

t.test('the queue comes first, then the last script of respond, which may be a function of the request', async (t) => {
  const server = await start(t);
  server.respond({ text: 'constant' });
  server.respond(async ({ body, headers }) => ({ text: `${headers['x-test']} ${body.model}` }));
  server.enqueue({ text: 'first' }, { text: 'second' });
  const texts = [];
  for (let n = 0; n < 3; n++) texts.push(await content(await ask(server)));
  t.same(texts, ['first', 'second', 'yes m']);
  t.equal(server.requests.length, 3);
  t.match(server.requests[0], { path: '/v1/chat/completions', body: HELLO, state: 'answered', connection: 1 });
});

t.test('a promise among the pieces holds the answer until the test lets it go on', async (t) => {
  const server = await start(t);
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  server.enqueue({ before: gates[0].promise, text: ['a', gates[1].promise, 'b'] });
  const asked = ask(server, { stream: true });
  const received = await server.received(1);
  t.equal(received.state, 'open');
  gates[0].resolve();
  const reader = (await asked).body?.getReader();
  let seen = '';
  while (!seen.includes('"content":"a"')) seen += Buffer.from((await reader?.read())?.value ?? []).toString();
  t.equal(received.sent, 2);
  t.notMatch(seen, '"content":"b"');
  gates[1].resolve();
  for (let next = await reader?.read(); !next?.done; next = await reader?.read())
    seen += Buffer.from(next?.value ?? []).toString();
  t.match(seen, /"content":"b".*\[DONE\]/s);
  t.equal(await received.ended, 'answered');

  const held = Promise.withResolvers<void>();
  server.enqueue({ text: ['a', held.promise, 'b'] });
  const whole = ask(server);
  await server.received(2);
  held.resolve();
  t.match(await (await whole).json(), { choices: [{ message: { content: 'ab' } }] });
});

t.test('data between two promises is sent in one write', async (t) => {
  const server = await start(t);
  server.enqueue({ text: ['a', 'b', 'c'] });
  const reader = (await ask(server, { stream: true })).body?.getReader();
  t.match(Buffer.from((await reader?.read())?.value ?? []).toString(), '"content":"a"');
  await reader?.cancel();
});

t.test('an endless generator waits for the socket to have room, and ends when its reader leaves', async (t) => {
  const server = await start(t);
  let left = () => {};
  const ended = new Promise<void>((resolve) => {
    left = resolve;
  });
  function* endless() {
    try {
      for (;;) yield 'x'.repeat(1000);
    } finally {
      left();
    }
  }
  server.enqueue({ text: endless() });
  const abort = new AbortController();
  const response = await ask(server, { stream: true }, abort.signal);
  const reader = response.body?.getReader();
  await reader?.read();
  abort.abort();
  await ended;
  const request = await server.received(1);
  t.equal(await request.ended, 'aborted');
  t.equal(request.state, 'aborted');
});

t.test('a caller that leaves while the script waits is recorded as aborted, one that was answered is not', async (t) => {
  const server = await start(t);
  const never = new Promise<void>(() => {});
  server.enqueue({ before: never }, { text: [never] }, { raw: ['a', never] }, { hangUp: true, before: never });
  for (const [number, stream] of [true, false, true, true].entries()) {
    const abort = new AbortController();
    const asked = ask(server, { stream }, abort.signal).then((response) => response.text());
    const request = await server.received(number + 1);
    abort.abort();
    await t.rejects(asked);
    t.equal(await request.ended, 'aborted');
  }
});

t.test('an error status has its body, by default the protocol’s, and a retry-after header', async (t) => {
  const server = await start(t);
  server.enqueue(
    { status: 429, retryAfter: 2 },
    { status: 500, body: 'plain text', headers: { 'x-should-retry': 'false' } },
    { status: 400, body: { error: 'odd' } },
  );
  const first = await ask(server);
  t.equal(first.status, 429);
  t.equal(first.headers.get('retry-after'), '2');
  t.match(await first.json(), { error: { message: /429/, type: 'scripted_error' } });
  const second = await ask(server, { stream: true });
  t.equal(second.headers.get('x-should-retry'), 'false');
  t.equal(second.headers.get('retry-after'), null);
  t.match(second.headers.get('content-type'), 'text/plain');
  t.equal(await second.text(), 'plain text');
  t.same(await (await ask(server)).json(), { error: 'odd' });
});

/**
 * The data that arrived before the socket was closed, and whether the HTTP message was complete.
 */
function readRaw(server: ModelServer, body: object): Promise<{ received: string; complete: boolean }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${server.url}/chat/completions`, { method: 'POST' }, (response: IncomingMessage) => {
      let received = '';
      response.on('data', (data) => {
        received += data;
      });
      response.on('close', () => resolve({ received, complete: response.complete }));
      response.on('error', () => {}); // the connection was cut; see `complete`
    });
    request.on('error', reject);
    request.end(JSON.stringify({ ...HELLO, ...body }));
  });
}

t.test('a cut closes the socket after so many events or bytes', async (t) => {
  const server = await start(t);
  const gate = Promise.resolve();
  server.respond({ text: ['a', gate, 'b'], cut: { afterEvents: 2 } });
  const cut = await readRaw(server, { stream: true });
  t.match(cut.received, /"content":"a"[^\n]*\n\n$/);
  t.equal(cut.complete, false);
  const half = await readRaw(server, {});
  t.equal(half.complete, false);
  t.throws(() => JSON.parse(half.received));

  server.respond({ text: ['a', gate, 'b'], cut: { afterBytes: 9 } });
  t.same(await readRaw(server, { stream: true }), { received: 'data: {"i', complete: false });
  t.same(await readRaw(server, {}), { received: '{"id":"ch', complete: false });
  server.respond({ text: [gate, 'b'], cut: { afterBytes: 300 } });
  t.equal((await readRaw(server, { stream: true })).received.length, 300);
  t.ok(
    server.requests.every(({ state }) => state === 'answered'),
    'that was the script, not the caller',
  );
});

t.test('raw bytes go out as they stand', async (t) => {
  const server = await start(t);
  server.enqueue(
    { raw: ['data: {"a', Buffer.from([0xff, 0xfe])], headers: { 'x-from': 'script' } },
    { raw: ['<html>'], contentType: 'text/html', status: 203 },
    { raw: [], contentType: null },
    { raw: ['half'], ending: 'cut' },
  );
  const first = await ask(server);
  t.equal(first.headers.get('content-type'), 'text/event-stream');
  t.equal(first.headers.get('x-from'), 'script');
  t.same(Buffer.from(await first.arrayBuffer()), Buffer.concat([Buffer.from('data: {"a'), Buffer.from([0xff, 0xfe])]));
  const second = await ask(server);
  t.equal(second.status, 203);
  t.equal(second.headers.get('content-type'), 'text/html');
  t.equal((await ask(server)).headers.get('content-type'), null);
  t.same(await readRaw(server, {}), { received: 'half', complete: false });
});

t.test('a connection may be closed or refused without an answer', async (t) => {
  const server = await start(t);
  server.enqueue({ hangUp: true });
  await t.rejects(ask(server), { cause: { code: 'UND_ERR_SOCKET' } });
  t.equal((await server.received(1)).state, 'answered');
  const url = await ModelServer.refusedUrl();
  await t.rejects(fetch(url), { cause: { code: 'ECONNREFUSED' } });
});

t.test('reports a mistake in a script as a 500 answer', async (t) => {
  const server = await start(t);
  server.respond(() => {
    throw new Error('no script for this');
  });
  const response = await ask(server);
  t.equal(response.status, 500);
  t.match(await response.text(), /threw: Error: no script for this/);
  const gate = Promise.withResolvers<void>();
  server.enqueue({ text: ['a', gate.promise] });
  const begun = await ask(server, { stream: true });
  gate.reject(new Error('later'));
  await t.rejects(begun.text());
});

t.test('requests that are not chat completions get errors of the protocol', async (t) => {
  const server = await start(t);
  t.equal((await fetch(`${server.url}/models`)).status, 404);
  t.equal((await fetch(`${server.url}/chat/completions`, { method: 'POST', body: '{' })).status, 400);
  t.same(server.requests, []);
});

t.test('close ends what is still open, and may be called twice', async (t) => {
  const server = await ModelServer.start();
  server.enqueue({ before: new Promise(() => {}) });
  const asked = ask(server);
  const request = await server.received(1);
  t.equal(server.openConnections, 1);
  await Promise.all([t.rejects(asked), server.close()]);
  await server.close();
  t.equal(await request.ended, 'aborted');
  t.equal(server.openConnections, 0);
});

t.test('the events of an answer can be had apart, to be bent and sent as raw bytes', async (t) => {
  const request: ChatRequest = { ...HELLO, stream: true };
  const server = await start(t);
  server.enqueue({ raw: [...eventsOf({ text: 'hi' }, request)].map((event) => `data:${JSON.stringify(event)}\r\n\r\n`) });
  t.match(await (await ask(server)).text(), /"content":"hi"/);
});
