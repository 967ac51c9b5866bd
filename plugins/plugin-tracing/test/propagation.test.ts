import { fileURLToPath } from 'node:url';
import type { ReceivedRequest } from '@plugboard/testing';
import t from 'tap';
import { tracedServer } from './traced-server.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER = 'b7ad6b7169203331';

t.test('the trace of the caller goes on to the model, with its tracestate', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t);
  await (await ask({}, { traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: 'vendor=a,other=b', baggage: 'user=anna' })).text();
  await stop();
  const request = collector.one('POST /v1/chat/completions');
  t.equal(request.traceId, TRACE);
  t.equal(request.parent, CALLER);
  t.equal(request.traceState, 'vendor=a,other=b');
  const { headers } = model.requests[0] as ReceivedRequest;
  t.equal(headers.traceparent, `00-${TRACE}-${collector.one('chat scripted').spanId}-01`);
  t.equal(headers.tracestate, 'vendor=a,other=b');
  t.notOk('baggage' in headers);
});

t.test('each attempt is the parent of its own request', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t);
  model.enqueue({ status: 503 }, { text: 'Hello.' });
  await (await ask()).text();
  await stop();
  t.strictSame(
    model.requests.map(({ headers }) => String(headers.traceparent).split('-')[2]),
    collector.named('chat scripted').map(({ spanId }) => spanId),
  );
});

t.test('an invalid traceparent begins a new trace', async (t) => {
  const { collector, ask, stop } = await tracedServer(t);
  const invalid = [
    '',
    'x',
    `00-${'0'.repeat(32)}-${CALLER}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${CALLER}-01`,
    `00-${TRACE}0-${CALLER}-01`,
    `00-${TRACE}-${CALLER}-01-more`,
    `ff-${TRACE}-${CALLER}-01`,
    `00-${TRACE}-${CALLER}`,
    `00-${TRACE}-${CALLER}-01, 00-${TRACE}-${CALLER}-01`,
    `00-${'a'.repeat(4000)}-${CALLER}-01`,
  ];
  for (const traceparent of invalid) t.equal((await ask({}, { traceparent, tracestate: 'a=b' })).status, 200);
  await stop();
  const requests = collector.named('POST /v1/chat/completions');
  t.equal(requests.length, invalid.length);
  t.ok(requests.every(({ parent, traceState }) => parent === undefined && traceState === ''));
  t.equal(new Set(requests.map(({ traceId }) => traceId)).size, invalid.length);
  t.notOk(requests.some(({ traceId }) => traceId === TRACE));
});

t.test('an unsampled trace sends nothing, and goes on', async (t) => {
  const { collector, model, ask, stop, server } = await tracedServer(t);
  await (await ask({ stream: true }, { traceparent: `00-${TRACE}-${CALLER}-00` })).text();
  await stop();
  t.strictSame(collector.spans, []);
  t.strictSame(collector.requests, []);
  t.match(model.requests[0]?.headers.traceparent, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
  t.equal(server.logs.find(({ msg }) => msg === 'request')?.trace_id, TRACE);
});

t.test('sampleRatio decides about traces that begin here, and no others', async (t) => {
  const { collector, ask, stop } = await tracedServer(t, { tracing: { sampleRatio: 0 } });
  await (await ask()).text();
  await (await ask({}, { traceparent: `00-${TRACE}-${CALLER}-01` })).text();
  await stop();
  t.strictSame([...new Set(collector.spans.map(({ traceId }) => traceId))], [TRACE]);
  t.equal(collector.spans.length, 3);
});

t.test('the line of a request has the ids of its span', async (t) => {
  const { collector, ask, stop, server } = await tracedServer(t);
  await (await ask()).text();
  await stop();
  const { traceId, spanId } = collector.one('POST /v1/chat/completions');
  t.match(
    server.logs.find(({ msg }) => msg === 'request'),
    { trace_id: traceId, span_id: spanId },
  );
});

t.test('OB-4 a call of an MCP tool is one span, whose keys in _meta have no prefix', async (t) => {
  const script = fileURLToPath(new URL('../../tool-mcp/test/fixtures/server.mjs', import.meta.url));
  const files = { use: 'mcp', command: process.execPath, args: [script] };
  const { collector, model, ask, stop } = await tracedServer(t, { config: { tools: { files } }, agent: { tools: ['files'] } });
  model.enqueue({ toolCalls: [{ name: 'files__meta', arguments: {} }] }, { text: 'Done.' });
  await (await ask({}, { tracestate: 'a=b', traceparent: `00-${TRACE}-${CALLER}-01` })).text();
  await stop();
  const call = collector.one('execute_tool files__meta');
  t.equal(call.attributes['plugboard.tool.entry'], 'files');
  const { progressToken: _, ...meta } = JSON.parse(String(model.requests[1]?.body.messages.at(-1)?.content));
  const { 'plugboard/idempotency-key': _key, ...trace } = meta;
  t.strictSame(trace, { traceparent: `00-${TRACE}-${call.spanId}-01`, tracestate: 'a=b' });
  t.equal(collector.spans.filter(({ name }) => name.includes('meta')).length, 1);
});
