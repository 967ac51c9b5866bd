import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AgentEvent, AgentRuntimes } from '@plugboard/kernel';
import { type AgentEvents, type AgentRuntime, NO_USAGE, type Target } from '@plugboard/kernel/contracts';
import { pluginContract, testContext, turnEvents } from '@plugboard/testing';
import { HttpRoutes } from '@plugboard/transport-http';
import { httpRouteContract, testHttpRequest } from '@plugboard/transport-http/testing';
import plugin from '../src/index.ts';

/** A runtime with one agent, whose turns have these events. */
function runtime(events: readonly AgentEvent[]): Partial<AgentRuntime> {
  return {
    resolve: (name) => (name === 'helper' ? { kind: 'target', target: { name } as Target } : { kind: 'unknown' }),
    run: () => turnEvents(turn(events)),
  };
}

async function* turn(events: readonly AgentEvent[]): AgentEvents {
  yield [
    { type: 'started', turnId: 'turn_1', agent: 'helper' },
    { type: 'step', step: 1, connection: 'fast' },
  ];
  yield events;
}

const HELLO: readonly AgentEvent[] = [
  { type: 'text', text: 'Hello.' },
  { type: 'finished', reason: 'stop', usage: NO_USAGE },
];

function route(events = HELLO) {
  const ctx = testContext(plugin);
  ctx.provide(AgentRuntimes, runtime(events) as AgentRuntime);
  return ctx.contributed(HttpRoutes);
}

const ask = async (body: object, events = HELLO) => route(events).handle(testHttpRequest({ method: 'POST', body }));

pluginContract(test, plugin, { packageDir: new URL('..', import.meta.url) });
httpRouteContract(test, { open: () => route(), request: { body: { agent: 'helper', text: 'Hi' } } });

test("answers with the agent's text", async () => {
  assert.equal((await ask({ agent: 'helper', text: 'Hi' })).body, 'Hello.');
});

test('refuses unknown agents and malformed requests', async () => {
  await assert.rejects(ask({ agent: 'nobody', text: 'Hi' }), { status: 404 });
  await assert.rejects(ask({ agent: 'helper' }), { status: 400, message: '`text` must be a string.' });
  await assert.rejects(ask({ text: 'Hi' }), { status: 400 });
});

test('reports a failed turn', async () => {
  const failed: AgentEvent = { type: 'failed', failure: { code: 'model_failed', message: 'No answer.', toolsRan: false } };
  await assert.rejects(ask({ agent: 'helper', text: 'Hi' }, [failed]), { status: 502, message: 'No answer.' });
});
