import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AgentRuntimes } from '@plugboard/kernel';
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
const check = { entries: () => ['helper'] };

pluginContract(test, plugin, {
  packageDir,
  config: { url: 'http://127.0.0.1:1', token: 'secret', agent: 'helper' },
  check,
});

/** A channel over a platform, with an agent whose answers the test scripts. */
async function opened() {
  const platform = new FakePlatform();
  const url = await platform.start();
  after(() => platform.stop());
  const config = { url, token: 'secret', agent: 'helper' };
  const ctx = testContext(plugin, { config, check, clock: systemClock });
  const runtime = new ScriptedRuntime({ agents: ['helper'], state: ctx.stateStore });
  ctx.provide(AgentRuntimes, runtime);
  const { signal } = new AbortController();
  return {
    platform,
    runtime,
    logs: ctx.logs,
    start: async () => ctx.lifecycle.start?.(signal),
    stop: async (at = signal) => ctx.lifecycle.stop?.(at),
  };
}

test('answers each message once, in the session of its chat', async () => {
  const { platform, runtime, start, stop } = await opened();
  runtime.enqueue({ text: 'Hello, Anna.' }, { text: 'Hello, Ben.' });
  platform.say('Hi');
  platform.say('Hi there', 'c2');
  await start();
  await eventually(() => platform.replies.length === 2);
  await stop();
  assert.deepEqual(platform.replies, [
    { id: 1, chat: 'c1', text: 'Hello, Anna.' },
    { id: 2, chat: 'c2', text: 'Hello, Ben.' },
  ]);
  const [first] = runtime.requests;
  assert.equal(first?.session?.key, 'test:c1');
  assert.equal(first?.principal.tokenId, 'plugins.test:c1-anna');
});

test('sends a reply until the platform takes it, without another turn', async () => {
  const { platform, runtime, start, stop, logs } = await opened();
  platform.statuses.push(503);
  platform.say('Hi');
  await start();
  await eventually(() => logs.length === 1);
  assert.match(String(logs[0]?.msg), /^the channel failed; it tries again in 5 s/);
  await stop();
  assert.equal(runtime.requests.length, 1);
  assert.deepEqual(platform.replies, []);
});

test('says that a turn failed, and goes on', async () => {
  const { platform, runtime, start, stop } = await opened();
  runtime.enqueue({ failure: 'model_failed' }, { text: 'Hello.' });
  platform.say('Hi');
  platform.say('Again');
  await start();
  await eventually(() => platform.replies.length === 2);
  await stop();
  assert.deepEqual(
    platform.replies.map(({ text }) => text),
    ['The scripted turn failed.', 'Hello.'],
  );
});

test('leaves out a reply that the platform refuses for good', async () => {
  const { platform, start, stop, logs } = await opened();
  platform.statuses.push(403);
  platform.say('Hi', 'blocked');
  platform.say('Hi');
  await start();
  await eventually(() => platform.replies.length === 1);
  await stop();
  assert.deepEqual(platform.replies, [{ id: 2, chat: 'c1', text: 'ok' }]);
  assert.equal(logs[0]?.msg, 'the platform refuses a reply: it is lost');
});

test('/stop ends the answer of its chat, and drops what waits there', async () => {
  const { platform, runtime, start, stop, logs } = await opened();
  runtime.enqueue({ after: new Promise(() => {}) }, { text: 'Hello, Ben.' }, { text: 'Hello again.' });
  platform.say('Tell me a long story');
  await start();
  await eventually(() => runtime.requests.length === 1);
  platform.say('Hi', 'c2');
  platform.say('And another one');
  platform.say('/stop', 'c3');
  platform.say(' /stop ');
  platform.say('Hi');
  await eventually(() => platform.replies.length === 4);
  await stop();
  assert.deepEqual(
    platform.replies.map(({ chat, text }) => [chat, text]),
    [
      ['c2', 'Hello, Ben.'],
      ['c3', 'Nothing is running.'],
      ['c1', 'Stopped.'],
      ['c1', 'Hello again.'],
    ],
  );
  assert.equal(runtime.requests.length, 3, 'no model is asked about a command');
  assert.equal(platform.maxPolls, 1, 'the platform has one poller');
  assert.deepEqual(logs, []);
});

test('a stop lets the answer end', async () => {
  const { platform, runtime, start, stop } = await opened();
  const gate = Promise.withResolvers<void>();
  runtime.enqueue({ text: 'Hello.', after: gate.promise });
  platform.say('Hi');
  await start();
  await eventually(() => runtime.requests.length === 1);
  const stopping = stop();
  gate.resolve();
  await stopping;
});

test('a stop that is over its limit says what it cut, and leaves no trace', async () => {
  const { platform, runtime, start, stop } = await opened();
  runtime.enqueue({ after: new Promise(() => {}) });
  platform.say('Hi');
  await start();
  await eventually(() => runtime.requests.length === 1);
  await assert.rejects(stop(AbortSignal.abort()), /1 answer was cut; the message is answered after the next start/);
  assert.deepEqual(platform.replies, []);
});

test('works in a whole server, also when a reload changes it', async () => {
  const platform = new FakePlatform();
  const url = await platform.start();
  after(() => platform.stop());
  const model = await ModelServer.start();
  after(() => model.close());
  const config = (token: string) => ({
    transports: { chat: { use: plugin, url, token, agent: 'helper' } },
    models: { fast: { use: 'openai', baseUrl: model.url, model: 'scripted' } },
    agents: { helper: { model: 'fast' }, other: { model: 'fast', system: 'You are another one.' } },
  });
  const { server, stop } = await startServer(config('secret'));
  after(stop);

  model.enqueue({ text: 'Hello.' }, { text: 'Hello again.' });
  platform.say('Hi');
  await eventually(() => platform.replies.length === 1);
  const changed = { ...config('secret'), transports: { chat: { use: plugin, url, token: 'secret', agent: 'other' } } };
  assert.equal((await server.reload(changed)).refused, undefined);
  platform.say('Hi again');
  await eventually(() => platform.replies.length === 2);
  assert.equal(platform.replies[1]?.text, 'Hello again.');
  assert.equal(platform.maxPolls, 1, 'the old poller had stopped before the new one began');
});
