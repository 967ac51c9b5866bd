/** Responses over two servers that share a store (PG-18, PG-20, PG-21). */
import t from 'tap';
import type { LiveEvent } from '../support/live-socket.js';
import { LiveSocket } from '../support/live-socket.js';
import { created, respond, responseIn, sessionKeys } from '../support/respond.js';
import { twoServers } from './two-servers.js';

const eventsOf = (text: string): readonly LiveEvent[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as LiveEvent);

/** A stored response of the first server that has said "hello " and goes on when the gate opens. */
async function running(t: Parameters<typeof twoServers>[0]) {
  const servers = await twoServers(t);
  const gate = Promise.withResolvers<void>();
  servers.one.app.models.enqueue({ text: ['hello ', gate.promise, 'world'] });
  const stream = await servers.one.app.open({ model: 'assistant', input: 'hi' }, {}, '/v1/responses');
  await stream.until('hello ');
  const [id = ''] = /resp_[0-9A-Za-z]{24}/.exec(stream.received) ?? [];
  return { ...servers, gate, stream, id };
}

t.test('PG-20 a response that runs is read, and its events are resumed, at another server', async (t) => {
  const { two, gate, stream, id } = await running(t);
  const got = await two.app.get(`/v1/responses/${id}`);
  t.match(got.body, { id, status: 'in_progress' });
  t.match((await two.app.get(`/v1/responses/${id}/input_items`)).body, { data: [{ type: 'message' }] });
  const resumed = two.app.get(`/v1/responses/${id}?stream=true&starting_after=1`);
  gate.resolve();
  await stream.until('[DONE]');
  const all = eventsOf(stream.received);
  const { text } = await resumed;
  t.strictSame(eventsOf(text), all.slice(2));
  t.ok(text.endsWith('data: [DONE]\n\n'));
  const later = await two.app.get(`/v1/responses/${id}?stream=true`);
  t.strictSame(eventsOf(later.text), all, 'its events are kept for a while at its server');
  t.match((await two.app.get(`/v1/responses/${id}`)).body, { status: 'completed' });
});

t.test('PG-20 a socket resumes a response of another server, and cancels it (PG-18)', async (t) => {
  const { two, stream, id } = await running(t);
  const live = await LiveSocket.open(t, two.app);
  live.send({ type: 'svc:response.resume', response_id: id, starting_after: -1 });
  await live.until('response.output_text.delta');
  live.send({ type: 'response.cancel', response_id: id });
  t.match((await live.turn()).at(-1), { response: { id, status: 'incomplete', incomplete_details: { reason: 'cancelled' } } });
  await stream.until('[DONE]');
  t.match(eventsOf(stream.received).at(-1), { type: 'response.incomplete' });
});

t.test('PG-18 POST /v1/responses/{id}/cancel ends a response of another server, and shows its end', async (t) => {
  const { two, stream, id } = await running(t);
  const { status, body } = await two.app.request('POST', `/v1/responses/${id}/cancel`);
  t.equal(status, 200);
  t.match(body, { id, status: 'incomplete', incomplete_details: { reason: 'cancelled' } });
  await stream.until('[DONE]');
});

t.test('PG-18 a response of another server that runs is deleted', async (t) => {
  const { one, two, stream, id } = await running(t);
  t.match((await two.app.request('DELETE', `/v1/responses/${id}`)).body, { id, deleted: true });
  await stream.until('[DONE]');
  t.equal((await two.app.get(`/v1/responses/${id}`)).status, 404);
  t.strictSame(await sessionKeys(one.app), []);
});

t.test('PG-20 a reader of a response sees it end if its server dies', async (t) => {
  const { one, two, gate, stream, id } = await running(t);
  const live = await LiveSocket.open(t, two.app);
  live.send({ type: 'svc:response.resume', response_id: id, starting_after: -1 });
  await live.until('response.output_text.delta');
  one.store.die();
  t.match((await live.turn()).at(-1), {
    type: 'response.incomplete',
    response: { id, incomplete_details: { reason: 'shutdown' } },
  });
  gate.resolve();
  stream.leave();
});

t.test('PG-20 events that the server of a response no longer keeps are 410 elsewhere, too', async (t) => {
  const { memory, one, two } = await twoServers(t);
  one.app.models.enqueue({ text: Array.from({ length: 16 }, () => 'x'.repeat(50_000)) });
  const stream = await one.app.open({ model: 'assistant', input: 'hi' }, {}, '/v1/responses');
  await stream.until('[DONE]');
  const [id = ''] = /resp_[0-9A-Za-z]{24}/.exec(stream.received) ?? [];
  const last = eventsOf(stream.received).at(-1)?.sequence_number ?? 0;
  const resume = (after: number) => two.app.get(`/v1/responses/${id}?stream=true&starting_after=${after}`);
  t.equal((await resume(1)).status, 410, 'they were large');
  t.equal((await resume(last - 1)).status, 200);
  memory.hidesOffers = true;
  t.equal((await resume(last - 1)).status, 410, 'its server shows it no more');
});

const ROUTES = [
  ['GET', ''],
  ['GET', '/input_items'],
  ['POST', '/cancel'],
  ['DELETE', ''],
  ['GET', '?stream=true'],
] as const;

t.test('PG-20 an unknown response is 404 at both servers, and so are its events', async (t) => {
  const { one, two } = await twoServers(t);
  const id = `resp_${'a'.repeat(24)}`;
  for (const { app } of [one, two]) {
    for (const [method, path] of ROUTES)
      t.equal((await app.request(method, `/v1/responses/${id}${path}`)).status, 404, `${method} ${path}`);
  }
});

t.test('PG-20 a response that was deleted at one server is gone at the server that ran it', async (t) => {
  const { one, two, gate, stream, id } = await running(t);
  gate.resolve();
  await stream.until('[DONE]');
  t.match((await one.app.get(`/v1/responses/${id}`)).body, { status: 'completed' });
  t.match((await two.app.request('DELETE', `/v1/responses/${id}`)).body, { deleted: true });
  for (const { app } of [one, two]) {
    for (const [method, path] of ROUTES)
      t.equal((await app.request(method, `/v1/responses/${id}${path}`)).status, 404, `${method} ${path}`);
  }
});

t.test('PG-21 a response is continued at another server, and two continuations at once are two branches', async (t) => {
  const { one, two } = await twoServers(t);
  const first = await created(one.app, { input: 'one' });
  const second = await created(two.app, { input: 'two', previous_response_id: first.id });
  t.match(two.app.asked.messages, [{ content: 'one' }, { content: 'one' }, { content: 'two' }]);
  t.equal((await sessionKeys(one.app)).length, 1, 'in the session of the first');
  const gate = Promise.withResolvers<void>();
  const asked = [one, two].map(({ app }, index) => {
    app.models.enqueue({ text: [`branch ${index}`, gate.promise] });
    return respond(app, { input: `three ${index}`, previous_response_id: second.id });
  });
  await Promise.all([one, two].map(({ app }) => app.models.received(2)));
  gate.resolve();
  const branches = await Promise.all(asked);
  const texts = branches.map((reply) => JSON.stringify(responseIn(reply).output));
  t.match(texts, [/branch 0/, /branch 1/]);
  t.equal((await sessionKeys(one.app)).length, 2);
  for (const { app } of [one, two]) t.equal(app.asked.messages.length, 5, 'each sees the two turns before and its own');
});

t.test('PG-21 a keyed continuation that another server overtook runs once, as a branch', async (t) => {
  const { memory, one, two } = await twoServers(t);
  const first = await created(one.app, { input: 'one' });
  const gate = Promise.withResolvers<void>();
  one.app.models.enqueue({ text: ['slow', gate.promise] });
  memory.hidesRunning = true;
  const slow = respond(one.app, { input: 'two', previous_response_id: first.id });
  await one.app.models.received(2);
  const body = { input: 'three', previous_response_id: first.id };
  const keyed = () => respond(two.app, body, { 'idempotency-key': 'k' });
  const reply = await keyed();
  t.match(responseIn(reply), { status: 'completed' });
  t.equal((await keyed()).headers.get('idempotent-replayed'), 'true');
  t.equal(two.app.models.requests.length, 1);
  gate.resolve();
  responseIn(await slow);
  t.equal((await sessionKeys(one.app)).length, 2);
});
