import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ModelServer, startServer } from '@plugboard/testing';
import { HttpHandlers } from '@plugboard/transport-http';
import express from 'express';
import t from 'tap';
import { liveConfig } from '../../support/live.js';
import { LiveSocket } from '../../support/live-socket.js';
import { readEventStream } from '../../support/server-sent-events.js';
import { saying } from '../../support/test-server.js';

t.test('R-060 a server inside Express ends its running turns, refuses new ones, and leaves Express alone', async (t) => {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const plugboard = await startServer(liveConfig('{}').replace('http: { port: 0 }', 'http: { listen: false }'), {
    env: { MODEL_URL: models.url, MODEL_KEY: 'key' },
  });
  t.throws(() => plugboard.url, /no transport of this server has an address/);
  const handler = plugboard.server.extensions(HttpHandlers).one();
  const app = express();
  app.get('/', (_, response) => void response.send('Express'));
  app.use(handler.request);
  const web = createServer(app).on('upgrade', handler.upgrade);
  await once(web.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    web.close();
    web.closeAllConnections();
  });
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  const chat = (body: object) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  const idle = await LiveSocket.open(t, { url });
  const busy = await LiveSocket.open(t, { url });
  const gate = Promise.withResolvers<void>();
  models.respond(() => ({ text: ['Half', ' of it'], before: gate.promise }));
  const whole = chat(saying('Hello'));
  const streamed = chat(saying('Hello', { stream: true }));
  busy.create({ model: 'assistant', input: 'Hello' });
  await models.received(3);

  const stopped = plugboard.stop();
  t.match(await idle.closed, { code: 1012 });
  const refused = await chat(saying('Hello'));
  t.equal(refused.status, 503);
  t.match(await refused.json(), { error: { code: 'draining' } });
  t.equal((await LiveSocket.refused(t, { url })).status, 503);
  t.equal((await fetch(`${url}/health`)).status, 200);

  gate.resolve();
  t.match(await (await whole).json(), { choices: [{ message: { content: 'Half of it' } }] });
  t.match(readEventStream(await (await streamed).text()), { text: 'Half of it', done: true });
  t.match((await busy.turn()).at(-1), { type: 'response.completed' });
  t.match(await busy.closed, { code: 1012 });
  await stopped;
  t.equal((await fetch(`${url}/health`)).status, 503);
  t.equal(await (await fetch(url)).text(), 'Express');
});
