/** What a socket sees of turns that other clients run in a conversation. */
import { eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { type LiveEvent, LiveSocket } from '../../../test/support/live-socket.js';
import { ASSISTANT, saying, TestServer } from '../../../test/support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../../../test/support/with-tools.js';

/** Opens a socket that watches a session. @param more fields of `LiveSocket.open`. */
async function watching(t: Test, app: TestServer, conversation: string, more: object = {}): Promise<LiveSocket> {
  const live = await LiveSocket.open(t, app, more);
  live.send({ type: 'svc:conversation.watch', conversation });
  return live;
}

/** The opaque id of the session with a key. */
async function sessionOf(app: TestServer, key: string, token?: string): Promise<string> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const { body } = await app.request('POST', '/v1/conversations', headers, { agent: 'assistant', id: key });
  return (body as { id: string }).id;
}

const typesOf = (events: readonly LiveEvent[]) => events.map(({ type }) => type);

/** The text of the deltas. */
const said = (events: readonly LiveEvent[]) =>
  events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join('');

t.test('C-250 a turn of chat completions is watched from its middle, with all that it has said', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const [half, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const id = await sessionOf(app, 'c');
  app.models.enqueue({ text: ['On', 'ce ', half.promise, 'upon', rest.promise, ' a time'] });
  const client = await app.open(saying('Tell me', { session_id: 'c' }));
  await client.until('ce ');
  const live = await watching(t, app, id);
  const [watched, created, begun, input, state] = [
    await live.next(),
    await live.next(),
    await live.next(),
    await live.next(),
    await live.next(),
  ];
  const responseId = created.response?.id;
  t.match(watched, { type: 'svc:conversation.watched', conversation: id, responses: [responseId] });
  t.match(created, {
    type: 'response.created',
    sequence_number: 0,
    stream_id: responseId,
    response: { agent: 'assistant', conversation: { id } },
  });
  t.equal(begun.type, 'response.in_progress');
  t.match(input, {
    type: 'svc:response.input',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Tell me' }] }],
  });
  t.match(state, { type: 'svc:session.state', conversation: id, state: 'running', turn: 1 });
  const before = await live.until('response.output_text.delta');
  t.equal(said(before), 'Once ');
  half.resolve();
  t.equal(said(await live.until('response.output_text.delta')), 'upon');
  rest.resolve();
  const events = await live.turn();
  t.equal(said(events), ' a time');
  t.match(events.at(-1), { type: 'response.completed', response: { id: responseId, status: 'completed', usage: {} } });
  t.match(events.at(-1)?.response?.output, [{ content: [{ text: 'Once upon a time' }] }]);
  t.same(
    live.events.slice(1).map(({ sequence_number }) => sequence_number),
    live.events.slice(1).map((_, index) => index),
  );
  t.match(await client.end(), { done: true });
  const { body } = await app.get(`/v1/conversations/${id}`);
  t.match(body, { turns: 1, status: 'idle' }, 'the last event came after the turn was stored');
});

t.test('C-250 the steps before are seen with their calls and results, also while a tool runs', async (t) => {
  const app = await TestServer.start(
    t,
    WITH_TOOLS.replace('transports:', 'transports:\n  responses: {}\n  websocket: {}\n  conversations: {}'),
    toolFixtures,
  );
  const gate = Promise.withResolvers<void>();
  const id = await sessionOf(app, 'c');
  app.models.enqueue({ text: 'I look.', toolCalls: [readTreasure] }, { text: ['It ', gate.promise, 'is there'] });
  const client = await app.open(saying('Where?', { session_id: 'c' }));
  await client.until('It ');
  const live = await watching(t, app, id);
  const late = await live.until('response.output_text.delta');
  t.same(said(late), 'I look.');
  const then = await live.until('response.output_text.delta');
  t.match(
    then.find(({ type, item }) => type === 'response.output_item.done' && (item as { type: string }).type === 'mcp_call'),
    { item: { name: 'read_text_file', server_label: 'files', status: 'completed', output: /treasure lies/ } },
  );
  gate.resolve();
  const end = (await live.turn()).at(-1);
  t.same(
    end?.response?.output.map(({ type }) => type),
    ['message', 'mcp_call', 'message'],
  );
  await client.end();
});

t.test('C-250 the first turn of a session is watched before the session is stored', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', gate.promise, ' and half'] });
  const client = await app.open(saying('x', { session_id: 'fresh' }));
  await client.until('Half');
  const { body } = await app.get('/v1/conversations');
  const [{ id } = { id: '' }] = (body as { data: { id: string }[] }).data;
  t.match((await app.get(`/v1/conversations/${id}/items`)).body, { object: 'list', data: [] });
  const live = await watching(t, app, id);
  t.match(await live.next(), { type: 'svc:conversation.watched', responses: [String], turns: 0 });
  gate.resolve();
  t.match((await live.turn()).at(-1), { type: 'response.completed' });
  await client.end();
});

t.test('C-251 every watcher sees each turn that begins later, of any surface, and a queued one as queued', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  const id = await sessionOf(app, 'c');
  const watchers = [await watching(t, app, id), await watching(t, app, id, { path: '/v1/live' })];
  for (const live of watchers) t.match(await live.next(), { type: 'svc:conversation.watched', responses: [] });
  app.models.enqueue({ text: ['One', gate.promise] }, { text: 'Two' });
  const runner = await LiveSocket.open(t, app);
  runner.create({ model: 'assistant', conversation: 'c', input: 'First' });
  const [created] = await runner.until('response.output_text.delta');
  const second = app.request('POST', '/v1/responses', {}, { model: 'assistant', conversation: 'c', input: 'Second' });
  for (const live of watchers) {
    t.equal((await live.next()).response?.id, created?.response?.id, 'the id of the response');
    const queued = [...(await live.until('svc:queue.position')), await live.next()];
    t.match(queued.slice(-4), [
      { type: 'response.created' },
      { type: 'response.queued' },
      { position: 1 },
      { type: 'svc:response.input', input: [{ content: [{ text: 'Second' }] }] },
    ]);
  }
  gate.resolve();
  const { id: secondId } = (await second).body as { id: string };
  for (const live of watchers) {
    t.match((await live.turn()).at(-1)?.response, { id: created?.response?.id, status: 'completed' });
    const events = await live.turn();
    t.match(events[0], { type: 'response.in_progress', stream_id: secondId });
    t.match(events.at(-1)?.response, { id: secondId, status: 'completed', output: [{ content: [{ text: 'Two' }] }] });
  }
  await runner.turn();
});

t.test('C-252 a connection sees its own responses once', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const id = await sessionOf(app, 'c');
  const live = await watching(t, app, id);
  await live.ask({ model: 'assistant', conversation: 'c', input: 'Mine' });
  await live.roundTrip();
  t.equal(typesOf(live.events).filter((type) => type === 'response.created').length, 1);
  await app.chat(saying('Theirs', { session_id: 'c' }));
  await live.turn();
  live.send({ type: 'svc:conversation.watch', conversation: null });
  await live.roundTrip();
  await app.chat(saying('Unseen', { session_id: 'c' }));
  await live.roundTrip();
  t.equal(typesOf(live.events).filter((type) => type === 'response.created').length, 2);
  live.send({ type: 'svc:conversation.watch' });
  t.match(await live.next(), { type: 'error', error: { code: 'missing_required_parameter', param: 'conversation' } });
});

t.test('C-253 a watcher sees how a turn fails, and can cancel one', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const id = await sessionOf(app, 'c');
  const live = await watching(t, app, id);
  app.models.enqueue({ status: 400, body: { error: { message: 'No.' } } });
  await app.chat(saying('Fail', { session_id: 'c' }));
  t.match((await live.turn()).at(-1), { type: 'response.failed', response: { error: { code: String, message: String } } });
  app.models.enqueue({ text: ['Long', new Promise<void>(() => {})] });
  const client = await app.open(saying('Again', { session_id: 'c' }));
  await client.until('Long');
  const [created] = await live.until('response.output_text.delta');
  live.send({ type: 'response.cancel', response_id: created?.response?.id });
  t.match((await live.turn()).at(-1), { type: 'response.incomplete', response: { incomplete_details: { reason: 'cancelled' } } });
  await client.end();
  t.match((await app.get(`/v1/conversations/${id}`)).body, { turns: 0, status: 'idle' });
});

t.test('R-020 C-254 a watcher neither keeps a turn running nor slows it, and is told if it falls behind', async (t) => {
  const app = await TestServer.start(t, liveConfig('{ maxBuffered: 64kb }'));
  const id = await sessionOf(app, 'c');
  const live = await watching(t, app, id);
  await live.next();
  app.models.enqueue({ text: ['Half', new Promise<void>(() => {})] });
  const client = await app.open(saying('x', { session_id: 'c' }));
  await live.until('response.output_text.delta');
  client.leave();
  t.match((await live.turn()).at(-1), { type: 'response.failed', response: { error: { code: 'abandoned' } } });
  live.ws.pause();
  app.models.enqueue({ text: Array.from({ length: 4_000 }, () => 'x'.repeat(2_048)) });
  t.equal((await app.stream(saying('A lot', { session_id: 'c' }))).status, 200);
  live.ws.resume();
  const events = await live.turn();
  t.match(events.at(-1), {
    type: 'error',
    status: 503,
    error: { code: 'overloaded', message: /more than 65536 bytes behind \(`maxBuffered`\)/ },
  });
  live.send({ type: 'svc:conversation.watch', conversation: id });
  t.match(await live.next(), { type: 'svc:conversation.watched', responses: [], turns: 1 });
});

/** A provider whose one token has the rights that the test says. */
const RIGHTS = {
  'provider.mjs': `
    import { AuthProviders, definePlugin } from '@plugboard/kernel';
    export default definePlugin({
      name: 'provider', apiVersion: 1, summary: 'Asks the test', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(AuthProviders, { authenticate: ({ bearer }) => globalThis[Symbol.for('watch-tests.rights')](bearer) }),
    });
  `,
};

t.test('S-09 S-12 C-255 only those who may read a session watch it, and only as long as they may', async (t) => {
  const clock = new ManualClock();
  const scopes = ['chat', 'sessions:read', 'sessions:write'];
  const rights: Record<string, object | undefined> = {
    mine: { project: 'default', tokenId: 'mine', scopes },
    other: { project: 'other', tokenId: 'other', scopes },
    narrow: { project: 'default', tokenId: 'narrow', scopes, agents: ['second'] },
    chatter: { project: 'default', tokenId: 'chatter', scopes: ['chat'] },
    late: { project: 'default', tokenId: 'late', scopes },
  };
  Object.assign(globalThis, {
    [Symbol.for('watch-tests.rights')]: (bearer: string) => rights[bearer] && { principal: rights[bearer] },
  });
  const agents = `${ASSISTANT}  second: { model: fast }\nauth: { provider: { use: ./provider.mjs } }\n`;
  const app = await TestServer.start(t, liveConfig('{}', agents), { files: RIGHTS, clock });
  const id = await sessionOf(app, 'c', 'mine');
  for (const token of ['other', 'narrow']) {
    const live = await watching(t, app, id, { token });
    t.match(
      await live.next(),
      { type: 'error', status: 404, conversation: id, error: { code: 'conversation_not_found' } },
      token,
    );
    live.send({ type: 'svc:conversation.watch', conversation: 'conv_none' });
    const [refused, unknown] = [live.events[0], await live.next()];
    t.same(refused?.error, unknown.error, 'an unknown session looks the same');
  }
  const chatter = await watching(t, app, id, { token: 'chatter' });
  t.match(await chatter.next(), { status: 403, error: { message: /lacks the scope `sessions:read`/ } });

  const [mine, late] = [await watching(t, app, id, { token: 'mine' }), await watching(t, app, id, { token: 'late' })];
  for (const live of [mine, late]) t.match(await live.next(), { type: 'svc:conversation.watched' });
  app.models.enqueue({ text: ['Half', new Promise<void>(() => {})] });
  const client = await app.open(saying('x', { session_id: 'c' }), { authorization: 'Bearer mine' });
  for (const live of [mine, late]) await live.until('response.output_text.delta');
  rights.late = { project: 'default', tokenId: 'late', scopes, agents: ['second'] };
  rights.mine = undefined;
  for (let second = 0; second < 6; second++) clock.advance(1_000);
  t.match((await late.turn()).at(-1), { type: 'error', status: 404 }, 'its agents are others now');
  t.match((await mine.turn()).at(-1), { type: 'error', status: 401 });
  t.match(await mine.closed, { code: 4401 });
  client.leave();
  await eventually(() => late.ws.readyState === late.ws.OPEN);
});

t.test('C-212 C-256 a watched turn ends during the drain, and the connection is closed after its last event', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  const id = await sessionOf(app, 'c');
  const [live, idle] = [await watching(t, app, id), await watching(t, app, await sessionOf(app, 'd'))];
  app.models.enqueue({ text: ['Half', gate.promise, ' and half'] });
  const client = await app.open(saying('x', { session_id: 'c' }));
  await live.until('response.output_text.delta');
  const stopped = app.stop();
  t.match(await idle.closed, { code: 1012 });
  gate.resolve();
  t.match((await live.turn()).at(-1), { type: 'response.completed' });
  t.match(await live.closed, { code: 1012 });
  await client.end();
  await stopped;
});
