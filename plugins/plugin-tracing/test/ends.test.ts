import { definePlugin, ModelConnectors, ToolSources } from '@plugboard/kernel';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { tracedServer } from './traced-server.js';

/** Never resolves. */
const FOREVER = new Promise<never>(() => {});

/** A tool that never returns, and does not notice its signal. */
const hanging = definePlugin({
  name: 'hanging',
  apiVersion: 1,
  summary: 'Offers a tool that hangs',
  configSchema: { type: 'object', properties: {} },
  register(ctx) {
    const tool = { name: 'slow', description: 'Hangs.', inputSchema: { type: 'object' }, run: () => FOREVER };
    ctx.contribute(ToolSources, { single: true, tools: () => [tool] });
  },
});

t.test('OB-2 the spans of a turn that the server stops end with it', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t, {
    config: { transports: { http: { port: 0, drain: '0ms' }, 'chat-completions': {}, sse: {} }, limits: { drain: '0ms' } },
  });
  model.respond({ text: ['Hello', FOREVER] });
  const answer = (await ask({ stream: true })).text().catch(() => '');
  await model.received(1);
  await t.rejects(stop(), /had to be aborted/);
  await answer;
  t.equal(collector.spans.length, 3, collector.tree());
  t.ok(
    collector.spans.every(({ isError }) => isError),
    collector.tree(({ name, attributes }) => `${name} ${attributes['error.type']}`),
  );
});

t.test('OB-2 an answer that breaks off ends its span with an error', async (t) => {
  const { collector, model, ask, stop } = await tracedServer(t);
  model.enqueue({ text: ['Hel', 'lo'], cut: { afterEvents: 2 }, usage: { promptTokens: 3 } });
  await (await ask({ stream: true })).text();
  await stop();
  t.match(collector.one('chat scripted'), { isError: true, attributes: { 'error.type': 'model_failed' } });
  t.match(collector.one('POST /v1/chat/completions'), { isError: true, attributes: { 'http.response.status_code': 200 } });
});

t.test('OB-2 the spans of a turn out of time end with its reason, also of a tool that ignores it', async (t) => {
  const tools = { slow: { use: hanging } };
  const { collector, model, ask, stop } = await tracedServer(t, { config: { tools }, agent: { timeout: '1s', tools: ['slow'] } });
  model.enqueue({ toolCalls: [{ name: 'slow', arguments: {} }] }, { text: 'unused' });
  t.equal((await ask()).status, 502);
  await stop();
  for (const name of ['invoke_agent helper', 'execute_tool slow']) {
    t.match(collector.one(name), { isError: true, attributes: { 'error.type': 'timed_out' } });
  }
});

t.test('OB-2 a model that ignores its signal does not keep its span open', async (t) => {
  const called = Promise.withResolvers<void>();
  const deaf = definePlugin({
    name: 'deaf',
    apiVersion: 1,
    summary: 'Never answers',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      const stream = () => {
        called.resolve();
        return { [Symbol.asyncIterator]: () => ({ next: () => FOREVER }) };
      };
      const facts = { model: 'deaf', contextWindow: 1000, input: ['text'] as const, supportsParam: () => false };
      ctx.contribute(ModelConnectors, { ...facts, stream });
    },
  });
  const clock = new ManualClock();
  const { collector, ask, stop, server } = await tracedServer(t, { clock, models: () => ({ fast: { use: deaf } }) });
  const abort = new AbortController();
  const asked = ask({ stream: true }, {}, abort.signal).catch(() => {});
  await called.promise;
  const { pending } = clock;
  abort.abort();
  await asked;
  await eventually(() => clock.pending !== pending);
  clock.advance(5000);
  await eventually(() => server.logs.some(({ event }) => event === 'turn_overdue'));
  await stop();
  t.match(collector.one('chat deaf'), {
    isError: true,
    attributes: { 'error.type': 'abandoned', 'gen_ai.provider.name': '_OTHER' },
  });
  t.equal(collector.spans.length, 3);
});
