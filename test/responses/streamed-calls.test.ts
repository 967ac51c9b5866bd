/**
 * The arguments of client tool calls, streamed as the model writes them, over HTTP and WebSocket.
 */
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { type LiveEvent, LiveSocket } from '../support/live-socket.js';
import { LiveStream } from '../support/live-stream.js';
import { created, respond, responseIn } from '../support/respond.js';
import { TestServer } from '../support/test-server.js';

const app = await TestServer.start(t, liveConfig());
const weather = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } };
const asking = { model: 'fast', input: 'Weather?', tools: [weather] };
const ARGUMENTS = ['{"city":', '"Par', 'is"}'];

/** A call whose last fragment waits. */
function gatedCall() {
  const gate = Promise.withResolvers<void>();
  const [first = '', second = '', last = ''] = ARGUMENTS;
  app.models.enqueue({ toolCalls: [{ id: 'call_w', name: 'weather', arguments: [first, second, gate.promise, last] }] });
  return gate;
}

/** Reads a stream to its end. */
async function eventsOf(stream: LiveStream): Promise<readonly LiveEvent[]> {
  await stream.until('data: [DONE]');
  return [...stream.received.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as LiveEvent);
}

async function open(t: Tap, body: object): Promise<LiveStream> {
  const abort = new AbortController();
  t.teardown(() => abort.abort());
  const headers = { 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify({ ...body, stream: true }), signal: abort.signal };
  return new LiveStream(await fetch(`${app.url}/v1/responses`, init), abort);
}
const DELTA = 'response.function_call_arguments.delta';
type Tap = Parameters<typeof LiveSocket.open>[0];

function argumentsIn(events: readonly LiveEvent[]): string {
  return events.map((event) => (event.type === DELTA ? event.delta : '')).join('');
}

t.test('C-104 over HTTP the first fragment comes before the model has completed the call', async (t) => {
  const gate = gatedCall();
  const stream = await open(t, asking);
  await stream.until('"type":"response.function_call_arguments.delta"');
  await stream.until('Par');
  t.notMatch(stream.received, 'is\\"}');
  t.match(stream.received, /"type":"response.output_item.added".*"call_id":"call_\w+","name":"weather","arguments":""/);
  gate.resolve();
  const all = await eventsOf(stream);
  t.equal(argumentsIn(all), ARGUMENTS.join(''));
  t.match(all.at(-1), {
    type: 'response.completed',
    response: { output: [{ arguments: ARGUMENTS.join(''), status: 'completed' }] },
  });
});

t.test('C-104 over WebSocket too; a stored response is resumed within a call', async (t) => {
  const gate = gatedCall();
  const live = await LiveSocket.open(t, app);
  live.create(asking);
  const first = await live.until(DELTA);
  const id = first[0]?.response?.id ?? '';
  const snapshot = (await app.get(`/v1/responses/${id}`)).body;
  t.match(snapshot, { status: 'in_progress', output: [{ type: 'function_call', status: 'in_progress' }] });
  const other = await LiveSocket.open(t, app);
  other.send({ type: 'svc:response.resume', response_id: id, starting_after: 2 });
  await other.until(DELTA);
  gate.resolve();
  const rest = await live.turn();
  t.equal(argumentsIn([...first, ...rest]), ARGUMENTS.join(''));
  t.match(rest.at(-1), { type: 'response.completed' });
  await other.turn();
});

t.test('C-224 a repeated request has the same call', async (t) => {
  app.models.enqueue({ toolCalls: [{ name: 'weather', arguments: ARGUMENTS }] });
  const headers = { 'idempotency-key': 'streamed-calls' };
  const first = await respond(app, { ...asking, stream: true }, headers);
  const again = await respond(app, { ...asking, stream: true }, headers);
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  const callOf = (text: string) => /"type":"response.output_item.done".*?"item":(\{.*?\})/.exec(text)?.[1];
  t.ok(callOf(first.text));
  t.equal(callOf(again.text), callOf(first.text));
});

t.test('a call that the model does not complete is incomplete, and needs no result when it is sent back', async (t) => {
  app.models.enqueue(
    { toolCalls: [{ name: 'weather', arguments: ARGUMENTS.slice(0, 2) }], finishReason: 'length' },
    { text: 'Sorry.' },
  );
  const stream = await open(t, { ...asking, store: false });
  const events = await eventsOf(stream);
  const last = events.at(-1);
  t.match(last, {
    type: 'response.incomplete',
    response: { output: [{ type: 'function_call', status: 'incomplete' }], incomplete_details: { reason: 'max_output_tokens' } },
  });
  const [call] = last?.response?.output ?? [];
  const user = (content: string) => ({ role: 'user', content });
  await created(app, { ...asking, store: false, input: [user('Weather?'), call, user('Again')] });
  t.same(
    app.asked.messages.map(({ role }) => role),
    ['user', 'user'],
  );
  const { status } = await respond(app, {
    ...asking,
    store: false,
    input: [user('Weather?'), call, { type: 'function_call_output', call_id: call?.call_id, output: 'The arguments are cut.' }],
  });
  t.equal(status, 200, 'a caller that answered it keeps the call and the result');
});

t.test('a stream that breaks within a call fails, with the call incomplete', async (t) => {
  app.models.enqueue({ toolCalls: [{ name: 'weather', arguments: ARGUMENTS }], cut: { afterEvents: 4 } });
  const stream = await open(t, asking);
  const events = await eventsOf(stream);
  t.match(events.at(-1), {
    type: 'response.failed',
    response: { status: 'failed', output: [{ type: 'function_call', status: 'incomplete', arguments: '{"city":"Par' }] },
  });
  app.models.enqueue({ toolCalls: [{ name: 'weather', arguments: ARGUMENTS }], cut: { afterEvents: 4 } }, { text: 'Whole.' });
  const whole = responseIn(await respond(app, { ...asking, model: 'fast' }));
  t.match(whole, { status: 'completed' }, 'a caller that does not stream gets the answer of the second attempt');
});
