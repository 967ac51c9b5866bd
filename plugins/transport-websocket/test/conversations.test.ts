/** What the requests of one connection continue, and what connections see of each other. */
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket } from '../../../test/support/live-socket.js';
import { askedContents, created } from '../../../test/support/respond.js';
import { ASSISTANT, TestServer } from '../../../test/support/test-server.js';

const TWO_AGENTS = `${ASSISTANT}  other: { model: fast }\n`;

t.test('C-201 a connection says once that its conversation is gone, and begins a new one', async (t) => {
  const app = await TestServer.start(t, liveConfig('{}', TWO_AGENTS));
  const live = await LiveSocket.open(t, app, { path: '/v1/live' });
  const last = await live.ask({ model: 'assistant', input: 'One' });
  await app.request('DELETE', `/v1/responses/${last.id}`);
  t.match((await live.refuse({ model: 'assistant', input: 'Two' })).error, { code: 'previous_response_not_found' });
  await live.ask({ model: 'assistant', input: 'Three' });
  t.same(askedContents(app), ['Three']);
  await live.ask({ model: 'assistant', input: 'Four' });
  t.same(askedContents(app), ['Three', 'Three', 'Four']);

  await live.ask({ model: 'other', input: 'Six' });
  t.same(askedContents(app), ['Six'], 'a message to another agent begins a conversation with it');
  t.match((await live.refuse({ model: 'other', input: [] })).error, { code: 'empty_array' });
  await live.ask({ model: 'other', input: 'Seven' });
  t.same(askedContents(app), ['Six', 'Six', 'Seven'], 'an invalid request ends no conversation');
});

t.test('C-201 a connection stays in the conversation that a message names', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const live = await LiveSocket.open(t, app, { path: '/v1/live' });
  await live.ask({ model: 'assistant', conversation: 'mine', input: 'One' });
  await live.ask({ model: 'assistant', input: 'Two' });
  await live.ask({ model: 'assistant', input: 'Three', store: false });
  await live.ask({ model: 'assistant', input: 'Four' });
  await app.chat({ model: 'assistant', session_id: 'mine', messages: [{ role: 'user', content: 'Five' }] });
  t.same(askedContents(app), ['One', 'One', 'Two', 'Two', 'Three', 'Three', 'Four', 'Four', 'Five']);
});

t.test('C-206 R-080 requests that name one conversation keep their order, whatever their streams', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const { output } = await created(app, { input: 'Referenced' });
  const live = await LiveSocket.open(t, app);
  const reference = { type: 'item_reference', id: output[0]?.id };
  const request = (stream_id: string, text: string, more: readonly object[] = []) =>
    live.create({ model: 'assistant', conversation: 'c', stream_id, input: [...more, { role: 'user', content: text }] });
  request('a', 'One', [reference]); // reads the store first
  request('b', 'Two');
  request('a', 'Three');
  request('b', 'Four');
  for (let ended = 0; ended < 4; ended++) await live.turn();
  await live.ask({ model: 'assistant', conversation: 'c', input: 'End' });
  t.same(
    askedContents(app).filter((_, index, all) => all.indexOf(all[index]) === index),
    ['Referenced', 'One', 'Two', 'Three', 'Four', 'End'],
  );
});

t.test('C-201 `svc:` events reach only connections that asked for them, also when a response is resumed', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', gate.promise, ' and half'] });
  const creator = await LiveSocket.open(t, app, { path: '/v1/live' });
  creator.create({ model: 'assistant', conversation: 'c', input: 'x' });
  const [start] = await creator.until('response.output_text.delta');
  const resume = { type: 'svc:response.resume', response_id: start?.response?.id };
  const [plain, extended] = [await LiveSocket.open(t, app), await LiveSocket.open(t, app, { path: '/v1/responses?events=svc' })];
  for (const live of [plain, extended]) live.send(resume);
  for (const live of [plain, extended]) await live.until('response.output_text.delta');
  gate.resolve();
  for (const live of [creator, plain, extended]) await live.turn();
  const states = (live: LiveSocket) => live.events.filter(({ type }) => type === 'svc:session.state').length;
  t.same([creator, plain, extended].map(states), [2, 0, 2]);
  const { text } = await app.get(`/v1/responses/${start?.response?.id}?stream=true`);
  t.match(text, 'response.completed');
  t.notMatch(text, 'svc:');
});

t.test('R-080 requests of two streams reach a conversation in order, named by its id and by its key', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const { body } = await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', id: 'c' });
  const names = [(body as { id: string }).id, 'c'];
  const live = await LiveSocket.open(t, app);
  for (let n = 0; n < 12; n++) {
    const asked = app.models.requests.length;
    for (const lane of [0, 1]) {
      live.create({ model: 'assistant', conversation: names[(lane + n) % 2], stream_id: `${lane}`, input: `${n}.${lane}` });
    }
    await live.until('response.completed');
    await live.until('response.completed');
    const said = app.models.requests.slice(asked).map(({ body }) => body.messages.at(-1)?.content);
    t.same(said, [`${n}.0`, `${n}.1`]);
  }
});
