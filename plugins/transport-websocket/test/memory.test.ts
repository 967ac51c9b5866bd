import { once } from 'node:events';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket, textOf } from '../../../test/support/live-socket.js';
import { TestServer } from '../../../test/support/test-server.js';

t.test('C-232 a response that does not fit into the memory of its caller fails and names the setting', async (t) => {
  const app = await TestServer.start(t, `${liveConfig()}\nlimits: { memory: 4mb }\n`);
  app.models.respond(({ body }) => {
    const isLong = JSON.stringify(body.messages.at(-1)?.content).includes('much');
    return { text: isLong ? Array<string>(100).fill('much '.repeat(2_000)) : 'Hello' };
  });
  const live = await LiveSocket.open(t, app);
  const error = { code: 'overloaded', message: /`limits\.memory`/ };
  for (const store of [true, false]) {
    live.create({ model: 'assistant', input: 'much', store });
    t.match((await live.turn()).at(-1), { type: 'response.failed', response: { status: 'failed', error } });
  }
  const whole = await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'much' });
  t.match(whole, { status: 503, body: { error } });
  t.equal(whole.headers.get('retry-after'), '5');
  t.equal(textOf(await live.ask({ model: 'assistant', input: 'x' })), 'Hello');
  const replies = app.started.server.budgets.reports().find(({ setting }) => setting === 'limits.memory');
  t.match(replies, { used: 0, refused: 3 });
});

t.test('C-233 pings measure what a client has read, and long messages arrive in fragments', async (t) => {
  const app = await TestServer.start(t, liveConfig('{ maxBuffered: 64kb }'));
  const page = 'page 😀'.repeat(20_000);
  app.models.respond({ text: Array<string>(10).fill(page) });
  const live = await LiveSocket.open(t, app);
  let pings = 0;
  live.ws.on('ping', () => pings++);
  t.equal(textOf(await live.ask({ model: 'assistant', input: 'x' })), page.repeat(10));
  t.ok(pings > 20, `${pings} pings`);

  const silent = await LiveSocket.open(t, app, { autoPong: false });
  silent.create({ model: 'assistant', input: 'x' });
  const [ping] = await once(silent.ws, 'ping');
  silent.ws.pong('not the text of a ping');
  await live.ask({ model: 'assistant', input: 'x' });
  const size = silent.events.reduce((sum, event) => sum + JSON.stringify(event).length, 0);
  t.ok(size < 512 * 1024, `${size} characters arrived`);
  silent.ws.on('ping', (data) => silent.ws.pong(data));
  silent.ws.pong(ping);
  t.match((await silent.turn()).at(-1), { type: 'response.completed' });
});

t.test('C-234 what a client sends is counted in the memory of its caller, until its response has ended', async (t) => {
  const app = await TestServer.start(t, `${liveConfig()}\nlimits: { memory: 1mb }\n`);
  const held = () => app.started.server.budgets.reports().find(({ setting }) => setting === 'limits.memory')?.used;
  const error = { code: 'overloaded', message: /`limits\.memory`/ };
  const half = 'x'.repeat(100_000);

  const fragments = await LiveSocket.open(t, app);
  fragments.ws.send(half, { fin: false });
  await eventually(() => held() === 320 * 1024);
  fragments.ws.ping(); // is not part of the message
  fragments.ws.send(half, { fin: false });
  t.match(await fragments.next(), { type: 'error', status: 503, error });
  t.same(await fragments.closed, { code: 1013, reason: 'overloaded' });
  await eventually(() => held() === 0);

  const waiting = await LiveSocket.open(t, app);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Hel', gate.promise, 'lo'] }, { text: 'Hello' });
  waiting.create({ model: 'assistant', input: half });
  waiting.create({ model: 'assistant', input: 'x', values: Array<number>(6_000).fill(1) });
  t.match((await waiting.until('error')).at(-1), { status: 503, error: { ...error, retry_after_ms: 5_000 } });
  gate.resolve();
  t.match((await waiting.turn()).at(-1), { type: 'response.completed' });
  await eventually(() => held() === 0);
  for (let pings = 0; pings < 100; pings++) {
    waiting.ws.ping('x'.repeat(100));
    await once(waiting.ws, 'pong');
  }
  t.equal(held(), 0);
});
