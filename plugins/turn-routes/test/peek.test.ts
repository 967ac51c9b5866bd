import { setImmediate } from 'node:timers/promises';
import type { AgentEvent } from '@plugboard/kernel';
import { type AgentEvents, NO_USAGE } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { peek } from '../src/peek.js';

const started: AgentEvent = { type: 'started', turnId: 't', agent: 'a' };
const step: AgentEvent = { type: 'step', step: 1, connection: 'fast' };
const text = (words: string): AgentEvent => ({ type: 'text', text: words });
const finished: AgentEvent = { type: 'finished', reason: 'stop', usage: NO_USAGE };
const failed: AgentEvent = { type: 'failed', failure: { code: 'model_failed', message: 'no', toolsRan: false } };

async function* stream(...batches: readonly (readonly AgentEvent[])[]): AsyncGenerator<readonly AgentEvent[]> {
  yield* batches;
}

async function collect(events: AgentEvents): Promise<AgentEvent[]> {
  const all: AgentEvent[] = [];
  for await (const batch of events) all.push(...batch);
  return all;
}

t.test('reads until a visible event, a failure or the timeout, and loses no event', async (t) => {
  const isVisible = (event: AgentEvent) => event.type === 'text';
  const clock = new ManualClock();
  const early = await peek(stream([started], [failed]), isVisible, 5000, clock);
  t.match(early, { failure: { code: 'model_failed' }, connection: undefined });
  const shown = await peek(stream([started, step], [text('a')], [finished]), isVisible, 5000, clock);
  t.match(shown, { failure: undefined, connection: 'fast' });
  t.strictSame(await collect(shown.events), [started, step, text('a'), finished]);
  t.equal(clock.pending, 0);

  const gate = Promise.withResolvers<void>();
  const slow = (async function* () {
    yield [started];
    await gate.promise;
    yield [text('late')];
    yield [failed];
  })();
  const peeking = peek(slow, isVisible, 5000, clock);
  await setImmediate();
  clock.advance(5000);
  const late = await peeking;
  t.match(late, { failure: undefined, connection: undefined });
  gate.resolve();
  t.strictSame(await collect(late.events), [started, text('late'), failed]);
});

t.test('a reader that leaves early returns the turn’s iterator', async (t) => {
  let released = false;
  const endless = (async function* () {
    try {
      for (;;) yield [text('x')];
    } finally {
      released = true;
    }
  })();
  const { events } = await peek(endless, () => true, 5000, new ManualClock());
  for await (const _ of events) break;
  t.ok(released);
});
