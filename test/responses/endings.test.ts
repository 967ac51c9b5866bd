/** How responses end, and what is left of them. */
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { LiveSocket, textOf } from '../support/live-socket.js';
import { askedContents, created, respond, responseIn, sessionKeys } from '../support/respond.js';
import { TestServer } from '../support/test-server.js';
import { GATED_SESSIONS, GATED_STORE, holdCommit } from './support/gated-store.js';

const gated = (t: Parameters<typeof TestServer.start>[0]) =>
  TestServer.start(t, liveConfig() + GATED_SESSIONS, { files: GATED_STORE });

t.test('C-214 a response that is cancelled while its turn is being stored ends as its turn: completed', async (t) => {
  const app = await gated(t);
  const live = await LiveSocket.open(t, app);
  const commit = holdCommit();
  live.create({ model: 'assistant', conversation: 'c', input: 'One' });
  await commit.began;
  const id = live.events[0]?.response?.id;
  live.send({ type: 'response.cancel', response_id: id });
  const overHttp = app.request('POST', `/v1/responses/${id}/cancel`);
  await live.roundTrip();
  t.notOk(live.events.some(({ type }) => type === 'response.incomplete' || type === 'response.completed'));
  commit.release();
  t.match((await live.turn()).at(-1), { type: 'response.completed' });
  t.match(responseIn(await overHttp), { id, status: 'completed' });
  await live.ask({ model: 'assistant', conversation: 'c', input: 'Two' });
  t.same(askedContents(app), ['One', 'One', 'Two'], 'the turn is in its conversation, as was reported');
});

t.test('C-225 deleting a response while its turn is being stored deletes what the turn leaves', async (t) => {
  const app = await gated(t);
  const live = await LiveSocket.open(t, app);
  const commit = holdCommit();
  live.create({ model: 'assistant', input: 'One' });
  await commit.began;
  const id = live.events[0]?.response?.id;
  const deleted = app.request('DELETE', `/v1/responses/${id}`);
  t.equal(await Promise.race([deleted.then(() => 'answered'), wait(100, 'waits')]), 'waits');
  commit.release();
  t.match((await deleted).body, { id, deleted: true });
  t.equal((await app.get(`/v1/responses/${id}`)).status, 404);
  t.same(await sessionKeys(app), []);
});

t.test('C-133 C-220 a retry that joins a turn while it is stored is stored as that turn', async (t) => {
  const app = await gated(t);
  const commit = holdCommit();
  const first = respond(app, { conversation: 'c', input: 'One' });
  await commit.began;
  const retry = respond(app, { conversation: 'c', input: 'One' });
  await app.get('/health'); // the retry has arrived before
  await wait(100);
  commit.release();
  const [one, other] = [responseIn(await first), responseIn(await retry)];
  t.equal(app.models.requests.length, 1);
  await created(app, { conversation: 'c', input: 'Later' });
  for (const { id } of [one, other]) {
    await created(app, { previous_response_id: id, input: 'Then' });
    t.same(askedContents(app), ['One', 'One', 'Then']);
  }
});

t.test('C-220 a response that failed or was cancelled is there after a restart, and cannot be continued', async (t) => {
  const config = `${liveConfig()}sessions: { use: sqlite, path: ${JSON.stringify(`${t.testdir()}/sessions.db`)} }\n`;
  const gate = Promise.withResolvers<void>();
  const ids: string[] = [];
  {
    const app = await TestServer.start(t, config);
    const live = await LiveSocket.open(t, app);
    const first = await live.ask({ model: 'assistant', input: 'First' });
    app.models.enqueue({ text: ['So', gate.promise], cut: { afterEvents: 2 } });
    live.create({ model: 'assistant', input: 'Fails', previous_response_id: first.id });
    await live.until('response.output_text.delta');
    gate.resolve();
    ids.push((await live.turn()).at(-1)?.response?.id ?? '');
    app.models.enqueue({ text: ['So', new Promise(() => {})] });
    live.create({ model: 'assistant', input: 'Cancelled' });
    const [start] = await live.until('response.output_text.delta');
    live.send({ type: 'response.cancel', response_id: start?.response?.id });
    ids.push((await live.turn()).at(-1)?.response?.id ?? '');
    await app.stop();
  }
  const app = await TestServer.start(t, config);
  const [failed, cancelled] = await Promise.all(ids.map(async (id) => responseIn(await app.get(`/v1/responses/${id}`))));
  t.match(failed, { status: 'failed', error: { code: 'model_failed' } });
  t.match(cancelled, { status: 'incomplete', incomplete_details: { reason: 'cancelled' } });
  t.equal(cancelled && textOf(cancelled), 'So');
  for (const id of ids) {
    const refused = await respond(app, { previous_response_id: id, input: 'x' });
    t.match(refused.body, { error: { code: 'previous_response_not_found', message: /failed or was cancelled/ } });
    t.equal((await app.request('DELETE', `/v1/responses/${id}`)).status, 200);
  }
  t.equal((await sessionKeys(app)).length, 1, 'that of the first response');
});

t.test('C-220 a refused request that continues an older response leaves no session', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const first = await created(app, { input: 'One' });
  const second = await created(app, { input: 'Two', previous_response_id: first.id });
  for (let attempt = 0; attempt < 3; attempt++) {
    app.models.enqueue({ status: 400 });
    t.equal((await respond(app, { input: 'Other', previous_response_id: first.id })).status, 502);
  }
  const answers = [{ type: 'function_call_output', call_id: 'call_x', output: 'x' }];
  t.equal((await respond(app, { input: answers, previous_response_id: first.id })).status, 400);
  t.same(await sessionKeys(app), [first.id]);
  t.ok(second.id);
});

t.test('C-220 a response that is cut before its caller was told its id leaves no session', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const { id } = await created(app, { conversation: 'c', input: 'One' });
  const cut = async (fields: object, meanwhile?: () => Promise<unknown>) => {
    const asked = app.models.requests.length;
    app.models.enqueue({ text: ['Be', new Promise(() => {})] });
    const abort = new AbortController();
    const body = JSON.stringify({ model: 'assistant', input: 'Two', ...fields });
    const headers = { 'content-type': 'application/json' };
    const reply = fetch(`${app.url}/v1/responses`, { method: 'POST', headers, body, signal: abort.signal });
    const received = await app.models.received(asked + 1);
    await meanwhile?.();
    abort.abort();
    await reply.catch(() => {});
    t.equal(await received.ended, 'aborted');
  };
  await cut({});
  await cut({ previous_response_id: id });
  // Its chain loses its only other response while it runs.
  const first = await created(app, { input: 'One' });
  await cut({ previous_response_id: first.id }, () => app.request('DELETE', `/v1/responses/${first.id}`));
  await eventually(async () => (await sessionKeys(app)).join() === 'c');
  t.same(await sessionKeys(app), ['c']);
  app.models.enqueue({ status: 400 }, { status: 400 });
  t.equal((await respond(app, { input: 'Three' })).status, 502);
  t.equal((await respond(app, { previous_response_id: id, input: 'Three' })).status, 502);
  await eventually(async () => (await sessionKeys(app)).join() === 'c');
});

t.test('C-220 the session of a chain is deleted with its last response, in whatever order', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const named = await created(app, { conversation: 'mine', input: 'Named' });
  for (const order of [
    [0, 1, 2],
    [2, 0, 1],
    [1, 2, 0],
  ]) {
    const ids: string[] = [];
    for (let count = 0; count < 3; count++) {
      const { id } = await created(app, { input: 'x', ...(count > 0 && { previous_response_id: ids.at(-1) }) });
      ids.push(id);
    }
    const branch = await created(app, { input: 'Branch', previous_response_id: ids[0] });
    for (const index of order) {
      t.same(await sessionKeys(app), ['mine', ids[0], branch.id].toSorted());
      t.equal((await app.request('DELETE', `/v1/responses/${ids[index]}`)).status, 200);
    }
    t.same(await sessionKeys(app), ['mine', branch.id], 'a branch has a session of its own');
    await app.request('DELETE', `/v1/responses/${branch.id}`);
  }
  await app.request('DELETE', `/v1/responses/${named.id}`);
  t.same(await sessionKeys(app), ['mine'], 'a session that a request named stays');
});
