import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket, textOf } from '../../../test/support/live-socket.js';
import { ASSISTANT, TestServer } from '../../../test/support/test-server.js';

const never = new Promise<never>(() => {});

/** Lets the server's time pass in steps, with a round trip after each, so that pongs arrive. */
async function pass(clock: ManualClock, live: LiveSocket, seconds: number): Promise<void> {
  for (let second = 0; second < seconds && live.ws.readyState === live.ws.OPEN; second += 10) {
    clock.advance(10_000);
    await Promise.race([live.roundTrip().catch(() => {}), live.closed]);
  }
}

t.test('C-200 a message of a client is answered on the same connection, as events with consecutive numbers', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  app.models.enqueue({ text: ['It is', ' noon.'] });
  live.create({ model: 'assistant', input: 'What time is it?' });
  const events = await live.turn();
  t.same(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  const types = events.map(({ type }) => type);
  t.same(
    types.filter((type, index) => type !== types[index - 1]),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ],
  );
});

t.test('C-201 /v1/live is one conversation and sends svc: events; /v1/responses does neither unless asked', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const [path, remembers, extensions] of [
    ['/v1/live', true, true],
    ['/v1/live?conversation=none&events=none', false, false],
    ['/v1/responses', false, false],
    ['/v1/responses?conversation=connection&events=svc', true, true],
  ] as const) {
    const live = await LiveSocket.open(t, app, { path });
    await live.ask({ model: 'assistant', input: 'One' });
    await live.ask({ model: 'assistant', input: 'Two' });
    const said = app.asked.messages.map(({ content }) => content);
    t.same(said, remembers ? ['You are the assistant.', 'One', 'One', 'Two'] : ['You are the assistant.', 'Two'], path);
    t.equal(
      live.events.some(({ type }) => type === 'svc:session.state'),
      extensions,
      path,
    );
  }
  const asked = await LiveSocket.open(t, app, { path: '/v1/responses?model=assistant' });
  t.match(await asked.ask({ input: 'Which agent?' }), { model: 'assistant', status: 'completed' });
  for (const query of ['conversation=yes', 'events=all']) {
    const { status, error } = await LiveSocket.refused(t, app, { path: `/v1/live?${query}` });
    t.match([status, error.code], [400, 'invalid_value'], query);
  }
});

t.test('C-202 an invalid message is answered with an error event, and the connection stays open', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const [message, code, param] of [
    ['{', 'invalid_json', null],
    ['[]', 'invalid_json', null],
    ['"text"', 'invalid_json', null],
    ['null', 'invalid_json', null],
    ['{}', 'unsupported_event', 'type'],
    ['{"type":7}', 'unsupported_event', 'type'],
    ['{"type":"response.steer"}', 'unsupported_event', 'type'],
    ['{"type":"response.create","stream":false,"input":"x"}', 'unsupported_parameter', 'stream'],
    ['{"type":"response.create","background":true,"input":"x"}', 'unsupported_parameter', 'background'],
    ['{"type":"response.create"}', 'missing_required_parameter', 'input'],
    ['{"type":"response.create","input":[]}', 'empty_array', 'input'],
    ['{"type":"response.create","input":"x","stream_id":""}', 'invalid_value', 'stream_id'],
    ['{"type":"response.cancel"}', 'missing_required_parameter', 'response_id'],
    ['{"type":"svc:response.resume","response_id":"resp_x","starting_after":1.5}', 'invalid_value', 'starting_after'],
    ['{"type":"svc:response.resume","response_id":"resp_x","starting_after":-2}', 'invalid_value', 'starting_after'],
  ] as const) {
    const live = await LiveSocket.open(t, app);
    live.send(message);
    const event = await live.next();
    t.match(event, { type: 'error', status: 400, error: { type: 'invalid_request_error', code, param } }, message);
    t.equal(textOf(await live.ask({ model: 'assistant', input: 'Still there?' })), 'Still there?', message);
  }
  const live = await LiveSocket.open(t, app);
  live.send({ type: 'response.create', stream_id: 'lane-7', input: 7 });
  t.match(await live.next(), { type: 'error', stream_id: 'lane-7' });
  live.send({ type: 'response.create', model: 'assistant', stream: true, input: 'x' });
  t.match((await live.turn()).at(-1), { type: 'response.completed' }, 'what SDKs send is accepted');
});

t.test('C-203 a request that cannot be served has the status, code and message of HTTP', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  for (const fields of [
    { model: 'nobody', input: 'x' },
    { model: 'assistant', input: 'x', previous_response_id: 'resp_nope' },
    { model: 'assistant', input: 'x', previous_response_id: 'resp_nope', conversation: 'c' },
    { model: 'assistant', input: 'x', temperature: 7 },
    { model: 'assistant', input: 'x', conversation: `conv_${'0'.repeat(40)}` },
    { model: 'assistant', input: [{ type: 'function_call_output', call_id: 'x', output: 'y' }] },
  ]) {
    const http = await app.request('POST', '/v1/responses', {}, fields);
    const event = await live.refuse(fields);
    const { error } = http.body as { error: Record<string, unknown> };
    t.equal(event.status, http.status, JSON.stringify(fields));
    t.match(event.error, { message: error.message, param: error.param ?? null, ...(error.code != null && { code: error.code }) });
  }
  app.models.enqueue({ status: 400 });
  live.create({ model: 'assistant', input: 'x' });
  t.match((await live.turn()).at(-1), { type: 'response.failed', response: { error: { code: 'model_failed' }, output: [] } });
});

t.test('C-204 a binary message, too many invalid ones, or one too large close the connection', async (t) => {
  const app = await TestServer.start(t, liveConfig('{ maxFrameSize: 64kb }'));
  const binary = await LiveSocket.open(t, app);
  binary.ws.send(Buffer.from('{}'));
  t.same(await binary.closed, { code: 1003, reason: 'text_only' });

  const wrong = await LiveSocket.open(t, app);
  for (let at = 0; at < 12; at++) wrong.send('no json');
  wrong.create({ model: 'assistant', input: 'Not read any more' });
  t.same(await wrong.closed, { code: 1008, reason: 'too_many_errors' });
  t.equal(wrong.events.length, 10);
  t.equal(app.models.requests.length, 0, 'messages after the close are ignored');

  const large = await LiveSocket.open(t, app);
  large.create({ model: 'assistant', input: 'x'.repeat(64 * 1024) });
  t.equal((await large.closed).code, 1009);

  const text = await LiveSocket.open(t, app);
  text.ws.send(Buffer.from([0xff, 0xfe]), { binary: false });
  t.equal((await text.closed).code, 1007);
  await eventually(() => app.accessLog.length === 4);
  t.match(app.accessLog, [{ close_code: 1003 }, { close_code: 1008 }]);
});

t.test('C-205 invalid messages are counted within a minute', async (t) => {
  const clock = new ManualClock();
  const app = await TestServer.start(t, liveConfig(), { clock });
  const live = await LiveSocket.open(t, app);
  for (let round = 0; round < 3; round++) {
    for (let at = 0; at < 9; at++) live.send('no json');
    await live.roundTrip().catch(() => {});
    while ((await live.next().catch(() => undefined))?.type === 'error');
    await pass(clock, live, 60);
  }
  t.equal(live.ws.readyState, live.ws.OPEN);
});

t.test('C-206 responses of one lane run one after the other, lanes run side by side', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  const gates = { a: Promise.withResolvers<void>(), b: Promise.withResolvers<void>() };
  app.models.respond(({ body }) => {
    const said = String(body.messages.at(-1)?.content);
    return said.startsWith('wait') ? { text: [gates[said.at(-1) as 'a' | 'b'].promise, said] } : { text: said };
  });
  live.create({ model: 'assistant', input: 'wait a', stream_id: 'a' });
  live.create({ model: 'assistant', input: 'after a', stream_id: 'a' });
  live.create({ model: 'assistant', input: 'beside', stream_id: 'b' });
  t.match((await live.until('response.completed')).at(-1), { stream_id: 'b' });
  t.equal(app.models.requests.length, 2, 'the second of lane a has not begun');
  gates.a.resolve();
  t.match((await live.until('response.completed')).at(-1), { stream_id: 'a' });
  t.match((await live.until('response.completed')).at(-1), { stream_id: 'a' });
  t.match(app.asked.messages.at(-1), { content: 'after a' });
});

t.test('C-207 a connection has at most 8 responses in flight and 32 lanes', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  const gate = Promise.withResolvers<void>();
  app.models.respond({ text: [gate.promise, 'x'] });
  for (let at = 0; at < 9; at++) live.create({ model: 'assistant', input: 'x', stream_id: `lane-${at}`, store: false });
  const refused = await eventually(() => live.events.find(({ type }) => type === 'error'));
  t.match(refused, {
    status: 429,
    stream_id: 'lane-8',
    error: { type: 'requests', code: 'concurrency_limit_exceeded', retry_after_ms: 1000 },
  });
  live.send({ type: 'svc:response.resume', response_id: 'resp_x' });
  await eventually(() => live.events.filter(({ type }) => type === 'error').length === 2);
  gate.resolve();
  await eventually(() => live.events.filter(({ type }) => type === 'response.completed').length === 8);
  app.models.respond({ text: 'x' });
  const lanes = await LiveSocket.open(t, app);
  for (let at = 0; at < 32; at++) await lanes.ask({ model: 'assistant', input: 'x', stream_id: `${at}` });
  const one = await lanes.refuse({ model: 'assistant', input: 'x', stream_id: 'one more' });
  t.match(one, { status: 429, error: { code: 'websocket_stream_limit_reached' } });
  t.match(await lanes.ask({ model: 'assistant', input: 'x', stream_id: '0' }), { status: 'completed' });
});

t.test('C-208 connections are limited for the process, and for each token or address, before the upgrade', async (t) => {
  const auth =
    'auth: { bearer: { tokens: [ { name: a, project: default, token: token-of-a-client }, { name: b, project: default, token: token-of-b-client } ] } }\n';
  const app = await TestServer.start(t, liveConfig('{ maxConnections: 3, maxConnectionsPerToken: 2 }', ASSISTANT + auth));
  const first = await LiveSocket.open(t, app, { token: 'token-of-a-client' });
  await LiveSocket.open(t, app, { token: 'token-of-a-client' });
  const third = await LiveSocket.refused(t, app, { token: 'token-of-a-client' });
  t.match(third, { status: 429, error: { code: 'connection_limit_exceeded', message: /maxConnectionsPerToken/ } });
  t.ok(third.headers['retry-after']);
  await LiveSocket.open(t, app, { token: 'token-of-b-client' });
  const fourth = await LiveSocket.refused(t, app, { token: 'token-of-b-client' });
  t.match(fourth, { status: 429, error: { message: /`maxConnections`/ } });
  first.ws.close();
  await first.closed;
  await eventually(() => app.accessLog.find(({ close_code }) => close_code !== undefined));
  t.ok(await LiveSocket.open(t, app, { token: 'token-of-a-client' }), 'a closed connection makes room');

  const open = await TestServer.start(t, liveConfig('{ maxConnectionsPerAddress: 1 }'));
  await LiveSocket.open(t, open);
  t.match(await LiveSocket.refused(t, open), { status: 429, error: { message: /maxConnectionsPerAddress/ } });
});

t.test('C-209 a client that does not answer two pings is disconnected', async (t) => {
  const clock = new ManualClock();
  const app = await TestServer.start(t, liveConfig(), { clock });
  const live = await LiveSocket.open(t, app);
  const silent = await LiveSocket.open(t, app, { autoPong: false });
  let pings = 0;
  live.ws.on('ping', () => pings++);
  await pass(clock, live, 60);
  t.equal(live.ws.readyState, live.ws.OPEN);
  t.ok(pings >= 2, `${pings} pings within a minute`);
  t.equal((await silent.closed).code, 1006);
});

t.test('C-210 a connection without a response for 30 minutes is closed with 1000', async (t) => {
  const clock = new ManualClock();
  const app = await TestServer.start(t, liveConfig(), { clock });
  const live = await LiveSocket.open(t, app);
  await pass(clock, live, 20 * 60);
  await live.ask({ model: 'assistant', input: 'Still here' });
  await pass(clock, live, 20 * 60);
  t.equal(live.ws.readyState, live.ws.OPEN);
  await pass(clock, live, 11 * 60);
  t.same(await live.closed, { code: 1000, reason: 'idle' });
});

t.test('C-211 a connection older than maxAge takes no new responses and is closed with 1001 after the last one', async (t) => {
  const clock = new ManualClock();
  const app = await TestServer.start(t, liveConfig('{ maxAge: 1m }'), { clock });
  const live = await LiveSocket.open(t, app);
  const idle = await LiveSocket.open(t, app);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['So', gate.promise, ' long'] });
  live.create({ model: 'assistant', input: 'x' });
  await live.until('response.output_text.delta');
  for (let second = 0; second < 70; second += 10) {
    clock.advance(10_000);
    live.send({ type: 'svc:ping', id: 'x' });
    await Promise.all([live.next(), Promise.race([idle.roundTrip().catch(() => {}), idle.closed])]);
  }
  t.same(await idle.closed, { code: 1001, reason: 'max_age' });
  t.match(await live.refuse({ model: 'assistant', input: 'x' }), {
    status: 429,
    error: { code: 'websocket_connection_limit_reached' },
  });
  gate.resolve();
  t.match((await live.until('response.completed')).at(-1), { response: { status: 'completed' } });
  clock.advance(1_000);
  t.same(await live.closed, { code: 1001, reason: 'max_age' });
});

t.test('C-212 a stopping server closes idle connections with 1012, and others after their responses', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const [idle, busy, resumed] = [await LiveSocket.open(t, app), await LiveSocket.open(t, app), await LiveSocket.open(t, app)];
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', gate.promise, ' done'] });
  busy.create({ model: 'assistant', input: 'x' });
  const [created] = await busy.until('response.output_text.delta');
  resumed.send({ type: 'svc:response.resume', response_id: created?.response?.id });
  await resumed.until('response.output_text.delta');
  const stopped = app.stop();
  t.same(await idle.closed, { code: 1012, reason: 'restart' });
  t.match(await busy.refuse({ model: 'assistant', input: 'x' }), {
    status: 503,
    error: { code: 'draining', retry_after_ms: 5000 },
  });
  gate.resolve();
  for (const live of [busy, resumed]) {
    t.match((await live.until('response.completed')).at(-1), { response: { status: 'completed' } });
    t.same(await live.closed, { code: 1012, reason: 'restart' });
  }
  await stopped;
});

t.test('C-213 a response that is still running when the drain time is over ends as incomplete, shutdown', async (t) => {
  const yaml = liveConfig().replace('port: 0', 'port: 0, drain: 500ms');
  const app = await TestServer.start(t, yaml);
  const live = await LiveSocket.open(t, app);
  app.models.enqueue({ text: ['Half', never] });
  live.create({ model: 'assistant', input: 'x' });
  await live.until('response.output_text.delta');
  const stopped = t.rejects(app.stop(), /1 reply was still running after 0.5 s/);
  t.match((await live.turn()).at(-1), {
    type: 'response.incomplete',
    response: { incomplete_details: { reason: 'shutdown' } },
  });
  await live.closed;
  await stopped;
});

for (const surface of ['socket', 'http'] as const) {
  t.test(`C-213 a response that was resumed (${surface}) gets its terminal event at the end of the drain time`, async (t) => {
    const yaml = liveConfig().replace('port: 0', 'port: 0, drain: 500ms');
    const app = await TestServer.start(t, yaml);
    const creator = await LiveSocket.open(t, app);
    app.models.enqueue({ text: ['Half', never] });
    creator.create({ model: 'assistant', input: 'x' });
    const [start] = await creator.until('response.output_text.delta');
    creator.ws.terminate();
    const id = start?.response?.id;
    const end = { type: 'response.incomplete', response: { incomplete_details: { reason: 'shutdown' } } };
    if (surface === 'socket') {
      const live = await LiveSocket.open(t, app);
      live.send({ type: 'svc:response.resume', response_id: id });
      await live.until('response.output_text.delta');
      const stopped = app.stop().catch(() => {});
      t.match((await live.turn()).at(-1), end);
      await stopped;
    } else {
      const resumed = await fetch(`${app.url}/v1/responses/${id}?stream=true`);
      const stopped = app.stop().catch(() => {});
      const events = (await resumed.text()).split('\n').filter((line) => line.startsWith('data: {'));
      t.match(JSON.parse(events.at(-1)?.slice(6) ?? ''), end);
      await stopped;
    }
  });
}

t.test('C-214 response.cancel ends a response as incomplete; unknown ids are ignored', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  app.models.enqueue({ text: ['So', never] });
  live.create({ model: 'assistant', input: 'x' });
  const [created] = await live.until('response.output_text.delta');
  live.send({ type: 'response.cancel', response_id: 'resp_000000000000000000000000' });
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  t.match((await live.turn()).at(-1), {
    type: 'response.incomplete',
    response: { incomplete_details: { reason: 'cancelled' }, output: [{ status: 'incomplete' }] },
  });
  t.equal(await (await app.models.received(1)).ended, 'aborted');
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  await live.roundTrip();
  t.equal(textOf(await live.ask({ model: 'assistant', input: 'And now?' })), 'And now?');
});

t.test('R-023 a cancelled turn leaves the session unchanged and free at once', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  await live.ask({ model: 'assistant', conversation: 'c', input: 'One' });
  app.models.enqueue({ text: ['So', never] });
  live.create({ model: 'assistant', conversation: 'c', input: 'Two' });
  const [created] = await live.until('response.output_text.delta');
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  await live.turn();
  await live.ask({ model: 'assistant', conversation: 'c', input: 'Three' });
  t.same(
    app.asked.messages.map(({ content }) => content),
    ['You are the assistant.', 'One', 'One', 'Three'],
  );
});
