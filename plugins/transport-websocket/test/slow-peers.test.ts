/** Clients on sockets that read nothing, or send too slowly. */
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { liveConfig } from '../../../test/support/live.js';
import { LiveSocket, textOf } from '../../../test/support/live-socket.js';
import { TestServer } from '../../../test/support/test-server.js';
import { RawClient } from '../../transport-http/test/support/raw-client.js';
import { frame, handshake } from './support/frames.js';

const PIECE = 'x'.repeat(8_192);

function* endless() {
  for (;;) yield PIECE;
}

/**
 * Waits until the model server has written nothing for a moment. @param sent the number of pieces
 * so far.
 */
async function standstill(sent: () => number): Promise<void> {
  let last = -1;
  await eventually(async () => {
    const stands = sent() === last;
    last = sent();
    await new Promise((resolve) => setTimeout(resolve, 200));
    return stands;
  });
}

for (const returns of [true, false]) {
  const title = returns ? 'finds the close code 1013 when it reads again' : 'is disconnected, and its turn is cancelled';
  t.test(`R-010 R-012 a socket that reads nothing for 30 seconds ${title}`, async (t) => {
    const clock = new ManualClock();
    const app = await TestServer.start(t, liveConfig(), { clock });
    app.models.respond(() => ({ text: endless() }));
    const live = await LiveSocket.open(t, app);
    live.create({ model: 'assistant', input: 'x', store: false });
    await live.until('response.output_text.delta');
    live.ws.pause();
    const asked = await app.models.received(1);
    await standstill(() => asked.sent);
    t.ok(asked.sent * PIECE.length < 64 * 2 ** 20, `the model's socket is not read any more, after ${asked.sent} pieces`);
    // The first look of the server finds that the client has read something since the connection
    // was opened.
    for (let second = 0; second < (returns ? 31 : 35); second++) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (returns) {
      live.ws.resume();
      t.same(await live.closed, { code: 1013, reason: 'slow_consumer' });
    }
    t.equal(await asked.ended, 'aborted');
    await eventually(() => app.accessLog.some(({ route }) => route === '/v1/responses'));
    live.ws.resume();
    await live.closed;
  });
}

t.test('R-010 a client that asks for a lot and reads nothing is not read from either', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const raw = await RawClient.open(app.port);
  raw.send(...handshake('/v1/live'));
  await raw.until(/101/);
  raw.socket.pause();
  const ping = frame(JSON.stringify({ type: 'svc:ping', id: 'x'.repeat(50_000) }));
  let sent = 0;
  while (sent < 200 * 2 ** 20) {
    sent += ping.length;
    if (!raw.socket.write(ping)) {
      const drained = await Promise.race([
        new Promise((resolve) => raw.socket.once('drain', () => resolve(true))),
        new Promise((resolve) => setTimeout(() => resolve(false), 1_000)),
      ]);
      if (!drained) break;
    }
  }
  t.ok(sent < 64 * 2 ** 20, `after ${Math.round(sent / 2 ** 20)} MiB the server reads no more`);
  raw.socket.destroy();
  t.equal((await app.get('/health')).status, 200);
});

t.test('R-011 sockets that read nothing do not hold up others', async (t) => {
  const app = await TestServer.start(t, liveConfig(), { clock: new ManualClock() });
  app.models.respond(({ body }) => {
    const said = String(body.messages.at(-1)?.content);
    return { text: said === 'for ever' ? endless() : said };
  });
  const neighbour = await LiveSocket.open(t, app);
  for (let at = 0; at < 25; at++) {
    const stalled = await LiveSocket.open(t, app);
    stalled.ws.pause();
    stalled.create({ model: 'assistant', input: 'for ever', store: false });
  }
  await app.models.received(25);
  const asked = app.models.requests.slice();
  await standstill(() => asked.reduce((sum, { sent }) => sum + sent, 0));
  for (const { sent, state } of asked) {
    t.equal(state, 'open', 'the turn waits for its reader');
    t.ok(sent * PIECE.length < 64 * 2 ** 20, `the model's socket is not read any more, after ${sent} pieces`);
  }
  for (const input of ['One', 'Two', 'Three']) {
    t.equal(textOf(await neighbour.ask({ model: 'assistant', input })), input);
    const { text } = await app.request('POST', '/v1/responses', {}, { model: 'assistant', input, stream: true });
    t.match(text, /event: response\.completed\n.*\n\ndata: \[DONE\]\n\n$/s);
  }
});

t.test('R-013 a message that arrives byte by byte ends its connection, and others are served', async (t) => {
  const clock = new ManualClock();
  const app = await TestServer.start(t, liveConfig('{ maxConnectionsPerAddress: 200 }'), { clock });
  const message = frame(JSON.stringify({ type: 'response.create', model: 'assistant', input: 'x'.repeat(1_000) }));
  const dribblers = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const raw = await RawClient.open(app.port);
      raw.send(...handshake('/v1/live'));
      await raw.until(/101/);
      return raw;
    }),
  );
  const live = await LiveSocket.open(t, app);
  for (let second = 0; second < 50; second++) {
    for (const { socket } of dribblers) if (!socket.destroyed) socket.write(message.subarray(second, second + 1));
    clock.advance(1_000);
    await live.roundTrip();
    if (second === 30) t.equal(textOf(await live.ask({ model: 'assistant', input: 'Meanwhile' })), 'Meanwhile');
  }
  for (const raw of dribblers) await raw.ended();
  await eventually(() => app.accessLog.filter(({ close_code }) => close_code === 1006).length === 100);
  t.equal(app.models.requests.length, 1, 'no message was complete');
  t.equal(live.ws.readyState, live.ws.OPEN);
});
