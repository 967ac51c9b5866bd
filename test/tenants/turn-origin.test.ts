import t from 'tap';
import { liveConfig } from '../support/live.js';
import { LiveSocket } from '../support/live-socket.js';
import { saying, TestServer } from '../support/test-server.js';

const WITNESS = `
import { definePlugin, Interceptors } from '@plugboard/kernel';

export default definePlugin({
  name: 'witness',
  apiVersion: 1,
  summary: 'Logs where turns come from',
  configSchema: { type: 'object', properties: {}, additionalProperties: false },
  register(ctx) {
    ctx.contribute(Interceptors, (turn, next) => {
      ctx.log.info({ transport: turn.transport, user: turn.user, tools: turn.tools.length }, 'witnessed');
      return next(turn);
    });
  },
});
`;

t.test('an interceptor learns the transport and the user of a turn on every surface', async (t) => {
  const yaml = `${liveConfig('{}')}plugins: { witness: { use: ./witness.js } }\n`.replace(
    'chat-completions: {}',
    'my-chat: { use: chat-completions }\n  messages: {}',
  );
  const app = await TestServer.start(t, yaml, { files: { 'witness.js': WITNESS } });
  const input = { model: 'assistant', input: 'Hello', user: 'ann' };
  await app.chat(saying('Hello', { user: 'ann' }));
  await app.chat(saying('Hello', { user: ' ' }));
  await app.request('POST', '/v1/responses', {}, { ...input, store: false });
  await app.request('POST', '/v1/responses', {}, { ...input, user: undefined, stream: true });
  await (await LiveSocket.open(t, app)).ask(input);
  const messages = {
    model: 'assistant',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'Hello' }],
    metadata: { user_id: 'ann' },
  };
  await app.request('POST', '/v1/messages', {}, messages);
  await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input: 'Hello' });
  const seen = app.started.logs.filter(({ msg }) => msg === 'witnessed').map(({ transport, user }) => [transport, user]);
  t.strictSame(seen, [
    ['my-chat', 'ann'],
    ['my-chat', undefined],
    ['responses', 'ann'],
    ['responses', undefined],
    ['websocket', 'ann'],
    ['messages', 'ann'],
    ['responses', undefined],
  ]);
});
