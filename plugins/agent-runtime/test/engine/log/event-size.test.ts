import type { AgentEvent, ModelEvent } from '@plugboard/kernel';
import { Account, Budget, NO_USAGE, OPEN } from '@plugboard/kernel/contracts';
import t from 'tap';
import { AnswerMemory } from '../../../src/engine/limits/answer-memory.js';
import { sizeOf } from '../../../src/engine/log/batch.js';
import { sizeOfEvent } from '../../../src/engine/log/event-size.js';

const LONG = 'x'.repeat(100_000);
const extra = { connection: 'fast', prefix: 'p', data: { of: 'f', parts: [{ options: { anthropic: { signature: LONG } } }] } };
const call = { type: 'tool-call', id: 'c', name: 'f', arguments: '{}' } as const;

/** An event of each type with its longest text. A new type does not compile without one. */
const EVENTS: { readonly [T in AgentEvent['type']]: Extract<AgentEvent, { type: T }> | undefined } & {
  readonly [T in ModelEvent['type']]: unknown;
} = {
  started: undefined, // holds nothing from outside
  step: undefined,
  usage: undefined,
  text: { type: 'text', text: LONG },
  reasoning: { type: 'reasoning', text: LONG },
  'tool-call-delta': { type: 'tool-call-delta', id: 'c', name: 'f', arguments: LONG },
  'tool-call': { ...call, extra },
  'tool-progress': { type: 'tool-progress', id: 'c', message: LONG },
  'tool-result': { type: 'tool-result', id: 'c', content: '', images: [LONG], isError: false, milliseconds: 1 },
  approval: { type: 'approval', id: 'a', code: 'ABCDEF', call: { ...call, arguments: LONG } },
  extra: { type: 'extra', extra },
  nested: { type: 'nested', call: 'c', agent: 'a', events: [{ type: 'text', text: LONG }] },
  finished: { type: 'finished', reason: 'stop', rawReason: LONG, usage: NO_USAGE },
  failed: { type: 'failed', failure: { code: 'model_failed', message: LONG, toolsRan: false } },
  end: { type: 'end', reason: 'stop', extra } satisfies ModelEvent,
};

t.test('S-75 the size of an event is that of everything from outside in it, for each type', async (t) => {
  for (const [type, event] of Object.entries(EVENTS)) {
    if (event === undefined) continue;
    const size = sizeOfEvent(event as AgentEvent | ModelEvent);
    t.ok(size >= LONG.length && size < 1.1 * LONG.length, `${type}: ${size}`);
    t.ok(sizeOf([event as AgentEvent]) > size, type);
  }
  let deep: unknown = 'x';
  for (let depth = 0; depth < 100_000; depth++) deep = [deep];
  t.ok(sizeOfEvent({ type: 'end', reason: 'stop', extra: deep }) > 100_000, 'however deep data is');
});

t.test('S-75 what a provider attaches to its answer counts as the answer does', async (t) => {
  const budget = new Budget({ name: 'memory', unit: 'bytes', limit: 64 * 2 ** 20, setting: 'limits.memory' });
  const account = new Account(budget, OPEN);
  account.hold();
  const memory = new AnswerMemory(account, 250_000);
  memory.say([{ type: 'end', reason: 'stop', extra: extra.data }]);
  t.ok(account.reserved >= Account.costOf(LONG.length));
  memory.say([{ ...call, extra: extra.data }]);
  t.throws(() => memory.say([{ ...call, extra: extra.data }]), { code: 'model_failed', message: /limits\.answerSize/ });
  const streamed = new AnswerMemory(account, 1_000);
  for (let index = 0; index < 9; index++)
    streamed.say([{ type: 'tool-call-delta', id: 'c', name: 'f', arguments: 'x'.repeat(100) }]);
  t.doesNotThrow(() => streamed.say([{ ...call, arguments: 'x'.repeat(900) }]), 'arguments that came in pieces count once');
});
