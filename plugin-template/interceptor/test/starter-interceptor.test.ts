import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentEvent, Interceptors, type Message } from '@plugboard/kernel';
import { NO_USAGE } from '@plugboard/kernel/contracts';
import { interceptorContract, pluginContract, testContext, testTurn } from '@plugboard/testing';
import plugin from '../src/index.ts';

const interceptor = (config: object = {}) => testContext(plugin, { config }).contributed(Interceptors);

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url) });
interceptorContract(test, { open: () => interceptor() });

async function* answer(): AsyncGenerator<readonly AgentEvent[]> {
  yield [{ type: 'started', turnId: 'turn_1', agent: 'assistant' }];
  yield [{ type: 'finished', reason: 'stop', usage: { ...NO_USAGE, promptTokens: 3, completionTokens: 2 } }];
}

test('refuses a conversation with too many messages', async () => {
  const messages: readonly Message[] = ['one', 'two', 'three'].map((content) => ({ role: 'user', content }));
  const events = interceptor({ maxMessages: 2 })(testTurn({ messages }), answer)[Symbol.asyncIterator]();
  await assert.rejects(events.next(), /more than 2 messages/);
});

test('logs the tokens of a turn', async () => {
  const ctx = testContext(plugin);
  for await (const _ of ctx.contributed(Interceptors)(testTurn(), answer));
  const [line] = ctx.logs.filter(({ msg }) => msg === 'turn');
  assert.equal(line?.read, 3);
  assert.equal(line?.written, 2);
});
