import t from 'tap';
import { answerOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

/** A whole agent runtime: one agent that repeats the last message. */
const ECHO_RUNTIME = `
  import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
  import { NO_USAGE, textOf } from '@plugboard/kernel/contracts';

  const echo = {
    kind: 'agent', name: 'echo', project: 'default', clientTools: 'ignore', fingerprint: '000000000000', input: ['text'],
    connection: '', onBusy: 'enqueue', toolVisibility: 'none', onDisconnect: 'cancel', forwardsParam: () => false,
  };

  const runtime = {
    resolve: (name) => (name === 'echo' ? { kind: 'target', target: echo } : { kind: 'unknown' }),
    list: () => [{ name: 'echo', kind: 'agent', description: 'Repeats you' }],
    claim: async (key, fingerprint) => ({ kind: 'new', claim: { key, fingerprint } }),
    ready: async () => true,
    conversations: {},
    async *run({ messages }) {
      yield [{ type: 'started', turnId: 'turn_1', agent: 'echo' }, { type: 'step', step: 1, connection: 'none' }];
      for (const word of textOf(messages.at(-1).content).split(' ')) yield [{ type: 'text', text: word }];
      yield [{ type: 'finished', reason: 'stop', usage: NO_USAGE }];
    },
  };

  export default definePlugin({
    name: 'echo-runtime', apiVersion: 1, summary: 'Repeats the last message',
    configSchema: { type: 'object', properties: {}, additionalProperties: false },
    register: (ctx) => ctx.contribute(AgentRuntimes, runtime),
  });
`;

t.test('one entry replaces the agent runtime', async (t) => {
  const server = await TestServer.start(t, `${TRANSPORTS}runtime: { use: ./echo-runtime.mjs }\n`, {
    files: { 'echo-runtime.mjs': ECHO_RUNTIME },
  });
  const hello = saying('Hello there', { model: 'echo' });
  t.equal(answerOf(await server.chat(hello)), 'Hellothere');
  const { text, chunks, done } = await server.stream(hello);
  t.strictSame([text, done], ['Hellothere', true]);
  t.ok(chunks.length > 2, 'each word is a separate chunk');
  t.match((await server.get('/v1/models')).body, { data: [{ id: 'echo' }] });
  t.equal((await server.chat(saying('Hi', { model: 'other' }))).status, 400);
  t.equal(server.models.requests.length, 0, 'no model was called');
});
