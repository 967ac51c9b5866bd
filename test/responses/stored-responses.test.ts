import { eventually } from '@plugboard/testing';
import t from 'tap';
import { LIVE_TRANSPORTS, liveConfig } from '../support/live.js';
import { type LiveEvent, type LiveResponseBody, LiveSocket, textOf } from '../support/live-socket.js';
import { ASSISTANT, type Reply, saying, TestServer } from '../support/test-server.js';
import { bearer, TOKENS, tokens } from '../support/tokens.js';

const never = new Promise<never>(() => {});
const TENANTS = `projects: { acme: {}, beta: {} }\n${ASSISTANT}  spy: { model: fast, project: acme }\n`;

const respond = (app: TestServer, body: object, headers: Readonly<Record<string, string>> = {}) =>
  app.request('POST', '/v1/responses', headers, { model: 'assistant', ...body });
const made = ({ status, body, text }: Reply): LiveResponseBody => {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return body as LiveResponseBody;
};
const errorOf = ({ body }: Reply) => (body as { error: Record<string, unknown> }).error;
const eventsOf = (text: string): LiveEvent[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)));

t.test('C-220 a stored response can be read, continued and deleted; one that is not stored cannot', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const first = made(await respond(app, { input: 'One' }));
  t.same(made(await app.get(`/v1/responses/${first.id}`)), first);
  const second = made(await respond(app, { input: 'Two', previous_response_id: first.id }));
  t.same(
    app.asked.messages.map(({ content }) => content),
    ['You are the assistant.', 'One', 'One', 'Two'],
  );
  const branch = made(await respond(app, { input: 'Other', previous_response_id: first.id }));
  t.equal(app.asked.messages.length, 4, 'an older response is continued as a branch of its own');
  t.not(branch.id, second.id);
  t.same(made(await app.request('DELETE', `/v1/responses/${second.id}`)), { id: second.id, object: 'response', deleted: true });
  for (const method of ['GET', 'DELETE']) {
    const gone = await app.request(method, `/v1/responses/${second.id}`);
    t.match([gone.status, errorOf(gone).code], [404, 'response_not_found'], method);
  }
  const unstored = made(await respond(app, { input: 'x', store: false }));
  t.equal((await app.get(`/v1/responses/${unstored.id}`)).status, 404);
  t.match(errorOf(await respond(app, { input: 'x', previous_response_id: unstored.id })), {
    code: 'previous_response_not_found',
  });
  for (const id of ['resp_x', '..%2f..%2fetc', 'x'.repeat(500)]) t.equal((await app.get(`/v1/responses/${id}`)).status, 404, id);
});

t.test('S-01 responses of another project are the same 404 as unknown ones, over HTTP and on sockets', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', TENANTS + TOKENS), {
    files: {
      'tokens.mjs': tokens['tokens.mjs'].replace(
        "const scopes = ['chat', 'models:read'];",
        "const scopes = ['chat', 'models:read', 'sessions:read', 'sessions:write'];",
      ),
    },
  });
  const [owner, stranger] = ['token-of-default', 'token-of-acme'];
  const { id, output } = made(await respond(app, { input: 'Secret' }, bearer(owner)));
  const unknown = `resp_${'0'.repeat(24)}`;
  const shape = (reply: Reply) => [reply.status, reply.text.replaceAll(id, '#').replaceAll(unknown, '#')];
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '?stream=true'],
    ['POST', '/cancel'],
    ['DELETE', ''],
  ] as const) {
    const theirs = await app.request(method, `/v1/responses/${id}${path}`, bearer(stranger));
    t.equal(theirs.status, 404, `${method} ${path}`);
    t.same(shape(theirs), shape(await app.request(method, `/v1/responses/${unknown}${path}`, bearer(stranger))));
  }
  for (const body of [
    { input: 'x', previous_response_id: id },
    {
      input: [
        { type: 'item_reference', id: output[0]?.id },
        { role: 'user', content: 'x' },
      ],
    },
  ]) {
    t.equal((await respond(app, { ...body, model: 'spy' }, bearer(stranger))).status, 400);
  }
  const live = await LiveSocket.open(t, app, { token: stranger });
  live.send({ type: 'svc:response.resume', response_id: id });
  t.match(await live.next(), { type: 'error', status: 404, error: { code: 'response_not_found' } });
  t.match(await live.refuse({ model: 'spy', input: 'x', previous_response_id: id }), {
    error: { code: 'previous_response_not_found' },
  });
  app.models.enqueue({ text: ['So', never] });
  const running = await LiveSocket.open(t, app, { token: owner });
  running.create({ model: 'assistant', input: 'x' });
  const [created] = await running.until('response.output_text.delta');
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  await live.roundTrip();
  t.equal(app.models.requests.at(-1)?.state, 'open', 'a foreign turn cannot be cancelled');
  t.equal((await app.get(`/v1/responses/${id}`, bearer(owner))).status, 200);
  running.send({ type: 'response.cancel', response_id: created?.response?.id });
  await running.turn();
});

t.test('C-221 a stream is resumed after any event that is still kept; before and after that are 410 and 400', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const streamed = eventsOf((await respond(app, { input: 'one two three', stream: true })).text);
  const id = streamed[0]?.response?.id;
  for (const after of [0, 3, streamed.length - 2]) {
    const resumed = await app.get(`/v1/responses/${id}?stream=true&starting_after=${after}`);
    t.same(eventsOf(resumed.text), streamed.slice(after + 1), `after ${after}`);
  }
  const whole = await app.get(`/v1/responses/${id}?stream=true`);
  t.same(eventsOf(whole.text), streamed);
  const ahead = await app.get(`/v1/responses/${id}?stream=true&starting_after=99`);
  t.match([ahead.status, errorOf(ahead).param], [400, 'starting_after']);
  t.equal((await app.get(`/v1/responses/${id}?stream=true&starting_after=x`)).status, 400);

  const live = await LiveSocket.open(t, app);
  live.send({ type: 'svc:response.resume', response_id: id, starting_after: 3 });
  t.same(await live.turn(), streamed.slice(4));
  live.send({ type: 'svc:response.resume', response_id: id, starting_after: 99 });
  t.match(await live.next(), { status: 400, error: { code: 'invalid_value', param: 'starting_after' } });

  const plain = made(await respond(app, { input: 'not streamed' }));
  const expired = await app.get(`/v1/responses/${plain.id}?stream=true`);
  t.match([expired.status, errorOf(expired).code], [410, 'response_events_expired']);
  live.send({ type: 'svc:response.resume', response_id: plain.id });
  t.match(await live.next(), { status: 410, error: { code: 'response_events_expired' } });
  live.send({ type: 'svc:response.resume', response_id: 'resp_nope' });
  t.match(await live.next(), { status: 404, error: { code: 'response_not_found' } });
});

t.test('C-222 a response of a dropped connection runs on and is resumed on another one, without gaps', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', gate.promise, ' and half'] });
  const first = await LiveSocket.open(t, app);
  first.create({ model: 'assistant', input: 'x' });
  const before = await first.until('response.output_text.delta');
  first.ws.terminate();
  const second = await LiveSocket.open(t, app);
  second.send({ type: 'svc:response.resume', response_id: before[0]?.response?.id, starting_after: before.length - 1 });
  gate.resolve();
  const after = await second.turn();
  t.same(
    [...before, ...after].map((event) => event.sequence_number),
    Array.from({ length: before.length + after.length }, (_, at) => at),
  );
  t.equal(textOf(after.at(-1)?.response as LiveResponseBody), 'Half and half');
});

t.test('C-223 an answer larger than what is kept for resuming reaches its reader whole, over both transports', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const text = Array.from({ length: 700 }, (_, at) => `${at} ${'x'.repeat(1_000)} `);
  app.models.respond({ text });
  const live = await LiveSocket.open(t, app);
  live.create({ model: 'assistant', input: 'x' });
  const onSocket = await live.turn();
  const overHttp = eventsOf((await respond(app, { input: 'x', stream: true })).text);
  for (const events of [onSocket, overHttp]) {
    t.same(
      events.map((event) => event.sequence_number),
      events.map((_, index) => index),
    );
    t.equal(textOf(events.at(-1)?.response as LiveResponseBody), text.join(''));
  }
  live.send({ type: 'svc:response.resume', response_id: onSocket[0]?.response?.id, starting_after: 0 });
  t.match(await live.next(), { status: 410, error: { code: 'response_events_expired' } });
});

t.test('C-224 a repeated request with an Idempotency-Key is replayed, whole and as a stream', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const key = { 'idempotency-key': 'k-1' };
  const first = await respond(app, { input: 'Once' }, key);
  const again = await respond(app, { input: 'Once' }, key);
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  const { output, id } = made(first);
  t.match(made(again), { id, output, status: 'completed' });
  t.equal(app.models.requests.length, 1);
  t.match(errorOf(await respond(app, { input: 'Other' }, key)), { code: 'idempotency_mismatch' });

  const streamKey = { 'idempotency-key': 'k-2' };
  const live = eventsOf((await respond(app, { input: 'Twice', stream: true }, streamKey)).text);
  const replay = await respond(app, { input: 'Twice', stream: true }, streamKey);
  const events = eventsOf(replay.text);
  t.equal(events.at(-1)?.type, 'response.completed');
  t.same(events.at(-1)?.response?.output, live.at(-1)?.response?.output);
  t.same(
    events.map(({ type }) => type),
    live.map(({ type }) => type),
    'with its deltas',
  );
  t.same(
    events.map((event) => event.sequence_number),
    events.map((_, index) => index),
  );
  app.models.enqueue({ status: 400 });
  const failed = await respond(app, { input: 'x' }, { 'idempotency-key': 'k-3' });
  t.equal(failed.status, 502);
  t.equal(
    (await respond(app, { input: 'x' }, { 'idempotency-key': 'k-3' })).status,
    200,
    'a failure without tools frees the key',
  );
});

t.test('C-225 cancel and delete end a running response; a repeated cancel returns it as it ended', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const [method, path] of [
    ['POST', '/cancel'],
    ['DELETE', ''],
  ] as const) {
    app.models.enqueue({ text: ['So', never] });
    const live = await LiveSocket.open(t, app);
    live.create({ model: 'assistant', input: 'x' });
    const [created] = await live.until('response.output_text.delta');
    const id = created?.response?.id ?? '';
    t.match(made(await app.get(`/v1/responses/${id}`)), { status: 'in_progress', output: [{ status: 'in_progress' }] });
    t.match(
      (await app.request(method, `/v1/responses/${id}${path}`)).body,
      path === '/cancel' ? { status: 'incomplete', incomplete_details: { reason: 'cancelled' } } : { deleted: true },
    );
    t.match((await live.turn()).at(-1), { type: 'response.incomplete' });
  }
  const done = made(await respond(app, { input: 'x' }));
  t.same(made(await app.request('POST', `/v1/responses/${done.id}/cancel`)), done, 'what has ended is returned');
});

t.test('C-226 turns of one session wait for each other on every surface, and say so on the live one', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['So', gate.promise] });
  const [first, second] = [await LiveSocket.open(t, app), await LiveSocket.open(t, app, { path: '/v1/live' })];
  first.create({ model: 'assistant', conversation: 'c', input: 'One' });
  await first.until('response.output_text.delta');
  second.create({ model: 'assistant', conversation: { id: 'c' }, input: 'Two' });
  t.match(await second.until('svc:queue.position'), [
    { type: 'response.created', response: { status: 'queued' } },
    { type: 'response.queued' },
    { type: 'svc:queue.position', position: 1 },
  ]);
  gate.resolve();
  const rest = await second.until('response.completed');
  t.equal(rest[0]?.type, 'response.in_progress');
  t.match(
    rest.find(({ type }) => type === 'svc:session.state'),
    { conversation: 'c', state: 'running', turn: 2 },
  );
  await respondChat(app);
  t.equal(app.asked.messages.length, 6, 'chat completions reach the same session');
});

async function respondChat(app: TestServer): Promise<void> {
  await app.chat({ model: 'assistant', session_id: 'c', messages: [{ role: 'user', content: 'Three' }] });
}

t.test('C-227 an interrupted response ends as incomplete, interrupted', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  app.models.enqueue({ text: ['So', never] });
  const live = await LiveSocket.open(t, app);
  live.create({ model: 'assistant', conversation: 'c', input: 'One' });
  await live.until('response.output_text.delta');
  const next = made(await respond(app, { conversation: 'c', input: 'Two' }, { 'x-session-busy': 'interrupt' }));
  t.match((await live.turn()).at(-1), { response: { incomplete_details: { reason: 'interrupted' } } });
  t.equal(textOf(next), 'Two');
  app.models.enqueue({ text: ['So', never] });
  live.create({ model: 'assistant', conversation: 'c', input: 'Three' });
  const [created] = await live.until('response.output_text.delta');
  const refused = await respond(app, { conversation: 'c', input: 'Four' }, { 'x-session-busy': 'reject' });
  t.match([refused.status, errorOf(refused).code], [409, 'session_busy']);
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  await live.turn();
});

t.test('C-228 generate: false asks no model and prepares a conversation', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app);
  const ready = await live.ask({ model: 'assistant', generate: false, input: [{ role: 'user', content: 'Keep this.' }] });
  t.match(ready, { status: 'completed', output: [], store: false });
  t.equal(app.models.requests.length, 0);
  await live.ask({ model: 'assistant', previous_response_id: ready.id, input: 'Now answer.' });
  t.match(app.asked.messages, [{ role: 'system' }, { content: 'Keep this.' }, { content: 'Now answer.' }]);
});

t.test('C-229 a stored response outlives a client that streams, another one is cancelled with its client', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const [body, state] of [
    [{ stream: true }, 'open'],
    [{ stream: true, store: false }, 'aborted'],
    [{}, 'aborted'],
  ] as const) {
    const gate = Promise.withResolvers<void>();
    app.models.enqueue({ text: ['So', gate.promise, ' it ends'] });
    const abort = new AbortController();
    const number = app.models.requests.length + 1;
    const sent = fetch(`${app.url}/v1/responses`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'assistant', input: 'x', ...body }),
      signal: abort.signal,
    }).catch(() => undefined);
    const asked = await app.models.received(number);
    if ('stream' in body) await (await sent)?.body?.getReader().read();
    abort.abort();
    await sent;
    if (state === 'aborted') t.equal(await asked.ended, 'aborted', JSON.stringify(body));
    else {
      await eventually(() => app.accessLog.length === number);
      t.equal(asked.state, 'open');
      gate.resolve();
      t.equal(await asked.ended, 'answered');
    }
    gate.resolve();
  }
});

t.test('C-230 without transport-sse a stream is refused with a sentence that names the plugin', async (t) => {
  const app = await TestServer.start(t, LIVE_TRANSPORTS.replace('  sse: {}\n', '') + ASSISTANT);
  const refused = await respond(app, { input: 'x', stream: true });
  t.match([refused.status, errorOf(refused).message], [400, /@plugboard\/transport-sse/]);
  t.equal((await respond(app, { input: 'x' })).status, 200);
});

t.test('deleting the only response of a chain keeps the turns that others added', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  for (const isShared of [true, false]) {
    const { id } = made(await respond(app, { input: 'One' }));
    const { body } = await app.get('/v1/conversations?limit=1');
    const [conversation] = (body as { data: { id: string; turns: number }[] }).data;
    if (isShared) await app.chat(saying('Two', { session_id: conversation?.id }));
    t.equal((await app.request('DELETE', `/v1/responses/${id}`)).status, 200);
    const left = await app.get(`/v1/conversations/${conversation?.id}`);
    t.match(isShared ? left.body : left.status, isShared ? { turns: 2 } : 404);
  }
});
