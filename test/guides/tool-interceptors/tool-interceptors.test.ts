import { type InterceptedCall, type Principal, ToolInterceptors, type ToolOutput } from '@plugboard/kernel';
import { testContext, testToolCall } from '@plugboard/testing';
import t from 'tap';
import approve from './approve.js';
import audit from './audit.js';
import cache from './cache.js';
import change from './change.js';
import deny from './deny.js';

/**
 * The interceptors of docs/guides/tool-interceptors.md, each around a tool that repeats its input.
 */

const refund = (amount: number, more: Partial<InterceptedCall> = {}): InterceptedCall => ({
  ...testToolCall(),
  entry: 'refund',
  tool: 'refund',
  effect: 'write',
  input: { amount },
  session: undefined,
  postpone: () => {
    throw new Error('postponed');
  },
  ...more,
});

/**
 * Runs calls through an interceptor. Returns what reached the tool, and what the model receives.
 */
function around(plugin: Parameters<typeof testContext>[0]) {
  const ctx = testContext(plugin);
  const interceptor = ctx.contributed(ToolInterceptors);
  const ran: unknown[] = [];
  const run = async (call: InterceptedCall): Promise<ToolOutput> =>
    interceptor(call, async ({ input }) => {
      ran.push(input.amount);
      return `run ${ran.length}`;
    });
  return { run, ran, logs: ctx.logs };
}

t.test('approve.ts postpones calls over 200 euros', async (t) => {
  const { run, ran } = around(approve);
  await t.rejects(run(refund(201)), { message: 'postponed' });
  t.equal(await run(refund(201, { postpone: () => {} })), 'run 1', 'once it is approved');
  await run(refund(200));
  t.strictSame(ran, [201, 200]);
});

t.test('deny.ts refuses calls over 1000 euros', async (t) => {
  const { run, ran } = around(deny);
  await t.rejects(run(refund(1001)), { name: 'TurnError', message: 'Refunds end at 1000 euros.' });
  await run(refund(1000));
  t.strictSame(ran, [1000]);
});

t.test('change.ts limits the amount', async (t) => {
  const { run, ran } = around(change);
  await run(refund(500));
  await run(refund(50));
  t.strictSame(ran, [100, 50]);
});

t.test('cache.ts runs a read-only tool once for a caller and its arguments', async (t) => {
  const { run } = around(cache);
  const read = (amount: number, more: Partial<Principal> = {}) => {
    const call = refund(amount, { effect: 'read' });
    return run({ ...call, principal: { ...call.principal, tokenId: 'ann', ...more } });
  };
  t.equal(await read(1), 'run 1');
  t.equal(await read(1), 'run 1');
  t.equal(await read(2), 'run 2', 'other arguments');
  t.equal(await read(1, { tokenId: 'ben' }), 'run 3', 'another caller');
  t.equal(await read(1, { project: 'acme' }), 'run 4', 'another project');
  t.equal(await read(1, { claims: {} }), 'run 5', 'a JWT without a subject identifies nobody');
  t.equal(await run(refund(1)), 'run 6', 'a tool that writes');
  t.equal(await run(refund(1)), 'run 7');
});

t.test('audit.ts logs calls of tools that write', async (t) => {
  const { run, ran, logs } = around(audit);
  await run(refund(1));
  await run(refund(2, { effect: 'read' }));
  t.match(logs, [{ log: 'audit', event: 'tool_called', tool: 'refund/refund', agent: 'assistant' }]);
  t.equal(logs.length, 1);
  t.strictSame(ran, [1, 2]);
});
