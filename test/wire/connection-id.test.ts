import { type Channel, channel } from 'node:diagnostics_channel';
import type { TurnRequest } from '@plugboard/kernel/contracts';
import t, { type Test } from 'tap';
import { liveConfig } from '../support/live.js';
import { LiveSocket } from '../support/live-socket.js';
import { saying, TestServer } from '../support/test-server.js';

/** What is published to a channel until the test is over. */
function published<T>(t: Test, name: string): readonly T[] {
  const messages: T[] = [];
  const onMessage = (message: unknown) => void messages.push(message as T);
  const subscribed: Channel = channel(name);
  subscribed.subscribe(onMessage);
  t.teardown(() => subscribed.unsubscribe(onMessage));
  return messages;
}

t.test('a turn of a socket names the request that opened it, a turn of a request does not', async (t) => {
  const requests = published<{ requestId: string; path: string }>(t, 'tracing:plugboard.http:start');
  const turns = published<{ request: TurnRequest }>(t, 'tracing:plugboard.turn:start');
  const app = await TestServer.start(t, liveConfig());
  await app.chat(saying('Hello'));
  const socket = await LiveSocket.open(t, app);
  await socket.ask({ model: 'assistant', input: 'Hello' });
  await socket.ask({ model: 'assistant', input: 'And you?' });
  const [chat, upgrade] = requests;
  t.match(requests, [{ path: '/v1/chat/completions' }, { path: '/v1/responses' }]);
  t.strictSame(
    turns.map(({ request }) => request.connectionId),
    [undefined, upgrade?.requestId, upgrade?.requestId],
  );
  t.equal(turns[0]?.request.requestId, chat?.requestId);
  t.equal(new Set(turns.map(({ request }) => request.requestId)).size, 3);
});
