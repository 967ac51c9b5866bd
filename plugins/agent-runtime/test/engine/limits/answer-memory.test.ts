import type { ModelEvent } from '@plugboard/kernel';
import { Account, Budget } from '@plugboard/kernel/contracts';
import t from 'tap';
import { AnswerMemory } from '../../../src/engine/limits/answer-memory.js';

/** Bytes that are reserved for the arguments, names and ids of calls in these events. */
function reservedFor(...events: readonly ModelEvent[]): number {
  const budget = new Budget({ name: 'memory', unit: 'bytes', limit: 2 ** 24, setting: 'limits.memory' });
  const account = new Account(budget, undefined);
  account.hold();
  new AnswerMemory(account, 2 ** 20).say(events);
  return account.reserved / Account.costOf(1) - 8 * events.length;
}

t.test('arguments that are streamed are counted once', async (t) => {
  const args = 'x'.repeat(4_000);
  const call = { type: 'tool-call', id: 'a', name: 'read', arguments: args } as const;
  const piece = (text: string) => ({ type: 'tool-call-delta', id: 'a', name: 'read', arguments: text }) as const;
  const streamed = [piece(''), piece(args.slice(0, 1_000)), piece(args.slice(1_000)), call];
  t.equal(reservedFor(call), 4_005);
  t.equal(reservedFor(...streamed), 4_005);
  t.equal(reservedFor(piece(args)), 4_000, 'also those of a call that is never complete');
  t.equal(reservedFor(...streamed, { ...call, id: 'b' }), 8_010, 'each call by itself');
  t.equal(reservedFor(...streamed, call), 8_010, 'a later call with the same id');
});
