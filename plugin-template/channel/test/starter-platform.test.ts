import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AgentRuntimes } from '@plugboard/kernel';
import { Channels } from '@plugboard/kernel/contracts';
import {
  eventually,
  ModelServer,
  pluginContract,
  ScriptedRuntime,
  startServer,
  systemClock,
  testContext,
} from '@plugboard/testing';
import plugin from '../src/index.ts';
import { FakePlatform } from './fake-platform.ts';

const packageDir = new URL('..', import.meta.url);
const check = { entries: (section: string) => (section === 'agents' ? ['helper'] : []) };

pluginContract(test, plugin, {
  packageDir,
  config: { url: 'http://127.0.0.1:1', token: 'secret', agent: 'helper' },
  check,
});

/** A channel over a platform, with an agent whose answers the test scripts. */
async function opened(token = 'secret') {
  const platform = new FakePlatform();
  const url = await platform.start();
  after(() => platform.stop());
  const ctx = testContext(plugin, { config: { url, token, agent: 'helper' }, check, clock: systemClock });
  const runtime = new ScriptedRuntime({ agents: ['helper'], state: ctx.stateStore });
  ctx.provide(AgentRuntimes, runtime);
  const { signal } = new AbortController();
  return {
    platform,
    runtime,
    logs: ctx.logs,
    channel: ctx.contributed(Channels),
    start: async () => ctx.lifecycle.start?.(signal),
    stop: async (at = signal) => ctx.lifecycle.stop?.(at),
  };
}

test('answers each message once, in the session of its chat', async () => {
  const { platform, runtime, start, stop } = await opened();
  runtime.enqueue({ text: 'Hello, Anna.' });
  platform.say('Hi');
  await start();
  await eventually(() => platform.replies.length === 1);
  runtime.enqueue({ text: 'Hello, Ben.' });
  platform.say('Hi there', 'c2');
  await eventually(() => platform.replies.length === 2);
  await stop();
  assert.deepEqual(
    platform.replies.map(({ chat, text, replyTo }) => [chat, text, replyTo]),
    [
      ['c1', 'Hello, Anna.', '1'],
      ['c2', 'Hello, Ben.', '2'],
    ],
  );
  const [first] = runtime.requests;
  assert.equal(first?.session?.key, 'test:c1');
  assert.equal(first?.principal.subject, 'c1-anna');
  assert.equal(platform.maxPolls, 1);
});

test('sends a reply until the platform takes it, without another turn', async () => {
  const { platform, runtime, channel, start, stop } = await opened();
  platform.statuses.push(503);
  platform.say('Hi');
  await start();
  await eventually(() => platform.replies.length === 1);
  assert.equal(platform.sent, 2);
  assert.equal(runtime.requests.length, 1);
  await eventually(() => channel.status().unsent === 0);
  await stop();
});

test('keeps a reply that the platform refuses for good, and goes on', async () => {
  const { platform, channel, start, stop } = await opened();
  platform.statuses.push(403);
  platform.say('Hi', 'blocked');
  platform.say('Hi');
  await start();
  await eventually(() => platform.replies.length === 1 && channel.status().failed === 1);
  await stop();
  const [failed] = (await channel.outbox?.failed()) ?? [];
  assert.equal(failed?.chat, 'blocked');
  assert.equal(failed?.reason, 'the platform answered 403');
});

test('sends a long text in parts that the platform takes', async () => {
  const { platform, runtime, start, stop } = await opened();
  runtime.enqueue({ text: '🙂'.repeat(9_000) });
  platform.say('Hi');
  await start();
  await eventually(() => platform.replies.length === 3);
  await stop();
  assert.equal(platform.replies.map(({ text }) => text).join(''), '🙂'.repeat(9_000));
});

test('says in the log and in its status that the platform refuses it, and tries on', async () => {
  const { logs, channel, start, stop } = await opened('wrong');
  await start();
  await eventually(() => channel.status().state === 'failed');
  assert.equal(channel.status().reason, 'GET /messages was answered 401; correct token');
  assert.equal(logs[0]?.msg, 'the platform is not reached, and is tried again: GET /messages was answered 401; correct token');
  await stop();
});

test('works in a whole server, also when a reload changes it', async () => {
  const platform = new FakePlatform();
  const url = await platform.start();
  after(() => platform.stop());
  const model = await ModelServer.start();
  after(() => model.close());
  const config = (agent: string) => ({
    transports: { chat: { use: plugin, url, token: 'secret', agent } },
    models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
    agents: { helper: { model: 'fast' }, other: { model: 'fast', system: 'You are another one.' } },
  });
  const { server, stop } = await startServer(config('helper'));
  after(stop);

  model.enqueue({ text: 'Hello.' }, { text: 'Hello again.' });
  platform.say('Hi');
  await eventually(() => platform.replies.length === 1);
  assert.equal((await server.reload(config('other'))).refused, undefined);
  platform.say('Hi again');
  await eventually(() => platform.replies.length === 2);
  assert.equal(platform.replies[1]?.text, 'Hello again.');
  assert.equal(platform.maxPolls, 1, 'the old poller had stopped before the new one began');
});
