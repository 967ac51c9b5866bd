import t from 'tap';
import { liveConfig } from '../support/live.js';
import { LiveSocket } from '../support/live-socket.js';
import { saying, TestServer } from '../support/test-server.js';

const TURNS = 20;

t.test('a caller that has read the end of a turn finds its place free, on every surface', async (t) => {
  const app = await TestServer.start(t, `${liveConfig()}limits: { runningTurns: 1, queuedTurns: 0 }\n`);
  const input = { model: 'assistant', input: 'Hello' };
  const body = (more: object) => JSON.stringify({ ...input, ...more });
  const socket = await LiveSocket.open(t, app);
  const surfaces: Readonly<Record<string, (turn: number) => Promise<unknown>>> = {
    chat: async () => (await app.chat(saying('Hello'))).status,
    'chat in a session': async () => (await app.chat(saying('Hello', { session_id: 's' }))).status,
    'streamed chat': async () => {
      const { status, text } = await app.stream(saying('Hello'));
      return text.includes('error') ? text : status;
    },
    responses: async () => (await app.request('POST', '/v1/responses', {}, body({ store: false }))).status,
    'stored responses': async () => (await app.request('POST', '/v1/responses', {}, body({}))).status,
    'streamed responses': async () => {
      const { status, text } = await app.request('POST', '/v1/responses', {}, body({ stream: true }));
      return text.includes('response.completed') ? status : text;
    },
    socket: async () => ((await socket.ask(input)).status === 'completed' ? 200 : 'failed'),
  };
  for (const [name, ask] of Object.entries(surfaces)) {
    for (let turn = 0; turn < TURNS; turn++) t.equal(await ask(turn), 200, `${name}, turn ${turn}`);
  }
});
