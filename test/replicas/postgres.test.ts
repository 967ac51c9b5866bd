/** Two whole servers over one schema of a real PostgreSQL. */
import { conversationId } from '@plugboard/kernel/contracts';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { newSchema } from '../../plugins/store-postgres/test/open-store.js';
import { realPostgres } from '../../plugins/store-postgres/test/real-postgres.js';
import { liveConfig } from '../support/live.js';
import { LiveSocket } from '../support/live-socket.js';
import { created, respond, responseIn, sessionKeys } from '../support/respond.js';
import { answerOf, errorOf, saying, TestServer } from '../support/test-server.js';

const CONFIG = liveConfig().concat(`
sessions: { use: postgres, url: "\${DATABASE_URL}", schema: "\${SCHEMA}", lease: 5s, poolSize: 2 }
`);

const postgres = await realPostgres();
const env = { DATABASE_URL: postgres.url(), SCHEMA: newSchema() };
const one = await TestServer.start(t, CONFIG, { env });
const two = await TestServer.start(t, CONFIG, { env });

const conversation = (key: string) => conversationId({ project: 'default', agent: 'assistant', key });
const asking = (text: string, key: string) => saying(text, { session_id: key });

t.test('PG-14 turns of one session run in order over two servers, and each sees the ones before', async (t) => {
  const gate = Promise.withResolvers<void>();
  one.models.enqueue({ text: ['first', gate.promise] });
  const first = one.chat(asking('a', 'order'));
  await one.models.received(1);
  const second = two.chat(asking('b', 'order'));
  const rejected = await two.chat(asking('c', 'order'), { 'x-session-busy': 'reject' });
  t.match(errorOf(rejected), { code: 'session_busy' });
  gate.resolve();
  t.equal(answerOf(await first), 'first');
  t.equal(answerOf(await second), 'b');
  t.strictSame(
    two.asked.messages.map(({ content }) => content),
    ['You are the assistant.', 'a', 'first', 'b'],
  );
  t.equal(answerOf(await one.chat(asking('d', 'order'))), 'd', 'its cache is not taken for the session');
  t.equal(one.asked.messages.length, 6);
});

t.test('PG-18 PG-20 a turn is seen and cancelled from the other server', async (t) => {
  one.models.enqueue({ text: ['never', new Promise(() => {})] });
  const count = one.models.requests.length;
  const turn = one.chat(asking('a', 'cancelled'));
  await one.models.received(count + 1);
  const id = conversation('cancelled');
  t.match((await two.get(`/v1/conversations/${id}`)).body, { status: 'running', turns: 0 });
  t.match((await two.get('/v1/conversations?status=running')).body, { data: [{ id }] });
  const reply = await two.request('POST', `/v1/conversations/${id}/cancel`);
  t.match(reply.body, { status: 'idle' });
  t.match(errorOf(await turn), { code: 'turn_cancelled' });
});

t.test('PG-18 R-078 a session is deleted while a turn of the other server runs', async (t) => {
  t.equal(answerOf(await one.chat(asking('a', 'deleted'))), 'a');
  one.models.enqueue({ text: ['never', new Promise(() => {})] });
  const count = one.models.requests.length;
  const turn = one.chat(asking('b', 'deleted'));
  await one.models.received(count + 1);
  t.match((await two.request('DELETE', `/v1/conversations/${conversation('deleted')}`)).body, { deleted: true });
  t.match(errorOf(await turn), { code: 'session_deleted' });
  t.equal(answerOf(await one.chat(asking('c', 'deleted'))), 'c');
  t.equal(one.asked.messages.length, 2);
});

t.test('PG-18 interrupt reaches a turn of the other server', async (t) => {
  one.models.enqueue({ text: ['never', new Promise(() => {})] });
  const count = one.models.requests.length;
  const turn = one.chat(asking('a', 'interrupted'));
  await one.models.received(count + 1);
  t.equal(answerOf(await two.chat(asking('b', 'interrupted'), { 'x-session-busy': 'interrupt' })), 'b');
  t.match(errorOf(await turn), { code: 'turn_interrupted' });
});

t.test('PG-19 C-133 an equal request at the other server joins the turn', async (t) => {
  const gate = Promise.withResolvers<void>();
  one.models.enqueue({ text: ['hello ', gate.promise, 'world'] });
  const [count, before] = [one.models.requests.length, two.models.requests.length];
  const body = JSON.stringify(asking('a', 'joined'));
  const first = one.chat(body);
  await one.models.received(count + 1);
  const joined = two.chat(body);
  setTimeout(gate.resolve, 50); // whether it joins before or after the answer is complete
  t.equal(answerOf(await first), 'hello world');
  t.equal(answerOf(await joined), two.models.requests.length === before ? 'hello world' : 'a');
});

t.test('PG-20 a response of the other server is read, resumed and cancelled', async (t) => {
  one.models.enqueue({ text: ['hello ', new Promise(() => {})] });
  const stream = await one.open({ model: 'assistant', input: 'hi' }, {}, '/v1/responses');
  await stream.until('hello ');
  const [id = ''] = /resp_[0-9A-Za-z]{24}/.exec(stream.received) ?? [];
  t.match((await two.get(`/v1/responses/${id}`)).body, { id, status: 'in_progress' });
  const live = await LiveSocket.open(t, two);
  live.send({ type: 'svc:response.resume', response_id: id, starting_after: -1 });
  await live.until('response.output_text.delta');
  t.match((await two.request('POST', `/v1/responses/${id}/cancel`)).body, { id, status: 'incomplete' });
  t.match((await live.turn()).at(-1), { type: 'response.incomplete', response: { id } });
  await stream.until('[DONE]');
});

t.test('PG-20 C-250 a watcher sees the turns of the other server', async (t) => {
  t.equal(answerOf(await one.chat(asking('a', 'watched'))), 'a');
  const live = await LiveSocket.open(t, two);
  live.send({ type: 'svc:conversation.watch', conversation: conversation('watched') });
  await live.until('svc:conversation.watched');
  const gate = Promise.withResolvers<void>();
  one.models.enqueue({ text: ['hello ', gate.promise, 'world'] });
  const turn = one.stream(asking('b', 'watched'));
  // The turn before may be shown, too: it ended as the watch began, by two clocks.
  await eventually(async () => (await live.until('response.output_text.delta')).at(-1)?.delta === 'hello ');
  gate.resolve();
  t.match((await live.turn()).at(-1), {
    type: 'response.completed',
    response: { output: [{ content: [{ text: 'hello world' }] }] },
  });
  t.equal((await turn).status, 200);
});

t.test('PG-21 two continuations at once, at two servers, are two branches', async (t) => {
  const before = (await sessionKeys(one)).length;
  const first = await created(one, { input: 'one' });
  const both = await Promise.all([one, two].map((app) => respond(app, { input: 'two', previous_response_id: first.id })));
  for (const reply of both) t.match(responseIn(reply), { status: 'completed' });
  t.equal((await sessionKeys(one)).length, before + 2);
  const third = await created(two, { input: 'three', previous_response_id: responseIn(both[0] as never).id });
  t.equal(third.status, 'completed');
  t.strictSame(
    two.asked.messages.map(({ content }) => content),
    ['You are the assistant.', 'one', 'one', 'two', 'two', 'three'],
  );
});

t.test('PG-17 a server that stops gives its sessions back at once', async (t) => {
  const three = await TestServer.start(t, CONFIG, { env });
  t.equal(answerOf(await three.chat(asking('a', 'stopped'))), 'a');
  await three.stop();
  t.equal(answerOf(await one.chat(asking('b', 'stopped'))), 'b');
  t.equal(one.asked.messages.length, 4);
});
