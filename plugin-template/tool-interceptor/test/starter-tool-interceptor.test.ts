import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type InterceptedCall, ToolInterceptors } from '@plugboard/kernel';
import { pluginContract, testContext, testToolCall } from '@plugboard/testing';
import plugin from '../src/index.ts';

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url) });

const call = (effect: InterceptedCall['effect']): InterceptedCall => ({
  ...testToolCall(),
  entry: 'desk',
  tool: 'close',
  effect,
  input: { ticket: 7 },
  session: undefined,
  postpone: () => {},
});

test('refuses a call with effects of a read-only agent', async () => {
  const interceptor = testContext(plugin, { config: { readOnly: ['assistant'] } }).contributed(ToolInterceptors);
  const next = () => assert.fail('the tool ran');
  await assert.rejects(async () => interceptor(call('write'), next), /may not call desk\/close: it only reads/);
  assert.equal(await interceptor(call('read'), async () => 'open'), 'open');
});

test('logs the calls of other agents', async () => {
  const ctx = testContext(plugin);
  assert.equal(await ctx.contributed(ToolInterceptors)(call('write'), async () => 'closed'), 'closed');
  const [line] = ctx.logs.filter(({ msg }) => msg === 'tool call');
  assert.equal(line?.tool, 'desk/close');
});
