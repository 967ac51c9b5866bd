import { type AgentEvent, AgentRuntimes } from '@plugboard/kernel';
import { type Approvals, type Conversations, NO_USAGE, type Target } from '@plugboard/kernel/contracts';
import { checkOptions, ManualClock, pluginContract, testContext, turnEvents } from '@plugboard/testing';
import chatCompletions, { type StreamEncoder, StreamEncoders } from '@plugboard/transport-chat-completions';
import { type HttpReply, HttpRoutes } from '@plugboard/transport-http';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import t from 'tap';
import plugin from '../src/index.js';

function encoder(config = {}): StreamEncoder {
  return testContext(plugin, { config, entry: 'transports.stream' }).contributed(StreamEncoders, 'sse');
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('C-090 C-105 the headers prevent buffering and caching', async (t) => {
  t.same(encoder().headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
});

t.test('C-091 a frame is one data line and a blank line', async (t) => {
  const { before, after, done } = encoder();
  t.equal(`${before}{}${after}`, 'data: {}\n\n');
  t.equal(done, 'data: [DONE]\n\n');
});

t.test('C-101 a comment is a line that readers ignore', async (t) => {
  t.equal(encoder().comment('keep-alive'), ': keep-alive\n\n');
});

t.test('C-101 the keep-alive interval is 15 s by default', async (t) => {
  t.equal(encoder().keepAliveEvery, 15_000);
  t.equal(encoder({ keepAlive: '2m' }).keepAliveEvery, 120_000);
});

t.test('refuses a keep-alive interval under one second', async (t) => {
  t.match(checkOptions(plugin, { keepAlive: '0s' }).faults, [/^keepAlive: "0s" is too short/]);
  t.match(checkOptions(plugin, { keepAlive: '999ms' }).faults, [/^keepAlive: "999ms" is too short/]);
  t.same(checkOptions(plugin, { keepAlive: '1s' }).faults, []);
});

t.test('C-091 C-100 C-108 chat completions writes valid frames with it', async (t) => {
  const said: AgentEvent[] = [
    { type: 'step', step: 1, connection: 'fast' },
    { type: 'text', text: 'line\n"two" 😀' },
  ];
  const chunk = (choice: string) =>
    `data: {"id":"chatcmpl-00000000000000000000000000001","object":"chat.completion.chunk","created":1795269909,"model":"assistant","service_tier":"default","system_fingerprint":"fp_0123456789ab","choices":[{"index":0,${choice}}]}\n\n`;
  const beginning =
    chunk('"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null') +
    chunk('"delta":{"content":"line\\n\\"two\\" 😀"},"logprobs":null,"finish_reason":null');

  t.equal(
    await transcript([said, [{ type: 'finished', reason: 'stop', usage: NO_USAGE }]]),
    `${beginning}${chunk('"delta":{},"logprobs":null,"finish_reason":"stop"')}data: [DONE]\n\n`,
  );
  t.equal(
    await transcript([said, [{ type: 'failed', failure: { code: 'model_failed', message: 'It broke.', toolsRan: false } }]]),
    `${beginning}data: {"error":{"message":"It broke.","type":"svc_error"}}\n\ndata: [DONE]\n\n`,
  );
});

/** All that a stream of these events writes. */
async function transcript(batches: readonly (readonly AgentEvent[])[]): Promise<string> {
  const target: Target = {
    kind: 'agent',
    name: 'assistant',
    project: 'default',
    clientTools: 'ignore',
    fingerprint: '0123456789ab',
    input: ['text'],
    connection: 'fast',
    onBusy: 'enqueue',
    toolVisibility: 'full',
    onDisconnect: 'cancel',
    forwardsParam: () => true,
    nameAtModel: (_, tool) => tool,
  };
  const context = testContext(chatCompletions, { clock: new ManualClock(Date.UTC(2026, 10, 21, 14, 5, 9)) });
  context.provide(StreamEncoders, encoder(), 'sse');
  context.provide(AgentRuntimes, {
    resolve: () => ({ kind: 'target', target }),
    list: () => [],
    claim: async (key, fingerprint) => ({ kind: 'new', claim: { key, fingerprint, release: () => {} } }),
    run: () => turnEvents(ReadableStream.from(batches)),
    conversations: {} as Conversations,
    approvals: {} as Approvals,
    ready: async () => true,
  });
  const reply: HttpReply = await context.contributed(HttpRoutes).handle(
    testHttpRequest({
      method: 'POST',
      path: '/v1/chat/completions',
      body: { model: 'assistant', messages: [{ role: 'user', content: 'Hi' }], stream: true },
    }),
  );
  let all = '';
  for await (const item of reply.body as AsyncIterable<string>) all += item;
  return all;
}
