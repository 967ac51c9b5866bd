import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { Collector } from './collector.js';
import { tracedServer } from './traced-server.js';

/** Never resolves. */
const FOREVER = new Promise<never>(() => {});

t.test('OB-7 turns do not notice a receiver that is dead, and the log says once that spans wait', async (t) => {
  const { ask, stop, server } = await tracedServer(t, { endpoint: await Collector.refused(t) });
  for (let turn = 0; turn < 3; turn++) t.equal((await ask()).status, 200);
  await stop();
  const lines = server.logs.filter(({ entry, level }) => entry === 'plugins.tracing' && level === 'warn');
  t.match(lines, [
    { msg: /the trace receiver does not take spans/, reason: 'ECONNREFUSED' },
    { msg: /spans are lost/, spans: 9 },
  ]);
});

t.test('OB-7 a receiver that hangs delays the stop by 5 s at most', async (t) => {
  const { collector, ask, stop, server } = await tracedServer(t, { tracing: { timeout: '1h' } });
  collector.answer = () => FOREVER;
  for (let turn = 0; turn < 180; turn++) await (await ask()).text(); // enough for a batch
  await collector.until(() => collector.requests.length > 0);
  t.equal((await ask()).status, 200);
  const before = performance.now();
  await stop();
  const seconds = (performance.now() - before) / 1000;
  t.ok(seconds > 4 && seconds < 60, `${seconds} s`);
  t.match(
    server.logs.filter(({ msg }) => /spans are lost/.test(msg)),
    [{ spans: 543 }],
  );
});

t.test('OB-7 a batch that the receiver refuses for good is dropped', async (t) => {
  const { collector, ask, stop, server } = await tracedServer(t);
  collector.answer = () => 500;
  t.equal((await ask()).status, 200);
  await stop();
  t.equal(collector.requests.length, 1);
  t.ok(server.logs.some(({ reason }) => reason === 'HTTP 500'));
});

t.test('OB-7 spans that a receiver rejects are reported', async (t) => {
  const { collector, ask, stop, server } = await tracedServer(t);
  collector.rejected = 2;
  await (await ask()).text();
  await stop();
  t.ok(server.logs.some(({ reason }) => reason === 'it rejected 2 spans of a batch'));
});

t.test('a web page in place of a receiver is reported', async (t) => {
  const { collector, ask, stop, server } = await tracedServer(t);
  collector.contentType = 'text/html; charset=utf-8';
  await (await ask()).text();
  await stop();
  t.ok(server.logs.some(({ reason }) => reason === 'it answered with a web page'));
});

t.test('the entry is degraded while the receiver is away, and the server stays ready', async (t) => {
  const { ask, server } = await tracedServer(t, {
    endpoint: await Collector.refused(t),
    config: { transports: { http: { port: 0 }, 'chat-completions': {}, sse: {}, health: {} } },
  });
  // Enough for a batch: it is sent at once.
  for (let turn = 0; turn < 180; turn++) await (await ask()).text();
  while (!server.logs.some(({ reason }) => reason === 'ECONNREFUSED')) await setImmediate();
  t.equal((await fetch(`${server.url}/readyz`)).status, 200);
  const { entries } = (await (await fetch(`${server.url}/v1/status`)).json()) as { entries: { entry: string }[] };
  t.match(
    entries.find(({ entry }) => entry === 'plugins.tracing'),
    { health: 'degraded', reason: 'the trace receiver does not take spans: ECONNREFUSED' },
  );
});

t.test('the headers and the resource of the options are sent', async (t) => {
  const { collector, ask, stop } = await tracedServer(t, {
    tracing: {
      headers: { 'X-Api-Key': 'k-1', 'User-Agent': 'shop' },
      resource: { 'service.name': 'shop', 'deployment.environment.name': 'test' },
    },
  });
  await (await ask()).text();
  await stop();
  t.match(collector.requests[0]?.headers, { 'x-api-key': 'k-1', 'user-agent': 'shop', 'content-type': 'application/x-protobuf' });
  t.match(collector.spans[0]?.resource, { 'service.name': 'shop', 'deployment.environment.name': 'test' });
});

t.test('a reload sends the next spans to another receiver, and loses none', async (t) => {
  const { collector, server, ask, stop, model, reload } = await tracedServer(t);
  const other = await Collector.start(t);
  const gate = Promise.withResolvers<void>();
  model.enqueue({ text: ['Hello', gate.promise, '.'] });
  const running = await ask({ stream: true });
  await model.received(1);
  await reload({ endpoint: other.endpoint, resource: { 'service.name': 'shop' } });
  gate.resolve();
  await running.text();
  await (await ask()).text();
  await stop();
  t.ok(server.logs.length > 0);
  t.strictSame(collector.spans, []);
  t.strictSame(
    other.spans.map(({ name, resource }) => [name, resource['service.name']]).toSorted(),
    ['POST /v1/chat/completions', 'chat scripted', 'invoke_agent helper'].flatMap((name) => [
      [name, 'plugboard'],
      [name, 'shop'],
    ]),
  );
});
