import assert from 'node:assert/strict';
import { tracingChannel } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { ManualClock, pluginContract, testContext } from '@plugboard/testing';
import plugin from '../src/index.ts';

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url) });

/** The observer, and a turn as the server publishes it. */
function opened() {
  const clock = new ManualClock();
  const { lifecycle, logs } = testContext(plugin, { config: { slowAfter: '30s' }, clock });
  const { start, asyncEnd } = tracingChannel('plugboard.turn');
  return {
    logs,
    open: async () => lifecycle.start?.(new AbortController().signal),
    close: async () => lifecycle.stop?.(new AbortController().signal),
    turn(duration: number) {
      const published: object = { request: { requestId: 'req_1', target: { name: 'helper' } } };
      start.publish(published);
      clock.advance(duration);
      asyncEnd.publish(Object.assign(published, { status: 'stop' }));
    },
  };
}

test('reports a slow turn, and no other', async () => {
  const { open, close, turn, logs } = opened();
  await open();
  turn(29_000);
  turn(31_000);
  await close();
  assert.deepEqual(
    logs.map(({ msg, agent, duration_ms, status }) => [msg, agent, duration_ms, status]),
    [['slow turn', 'helper', 31_000, 'stop']],
  );
});

test('watches nothing after its stop', async () => {
  const { open, close, turn, logs } = opened();
  await open();
  await close();
  turn(31_000);
  assert.deepEqual(logs, []);
});
