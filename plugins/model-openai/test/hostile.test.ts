/** Model servers that send more than an answer may hold (S-75): it counts, and nothing is left. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ModelEvent } from '@plugboard/kernel';
import { Account } from '@plugboard/kernel/contracts';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import { turnWith as turnOf } from '../../../test/support/turn-with.js';
import { CLOCK, open, readError, WHOLE } from './connection.js';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');
const MIB = 2 ** 20;

const turnWith = (limit: number) => turnOf(limit, [CLOCK]);

function* endless(start: string) {
  yield start;
  for (;;) yield 'x'.repeat(65_536);
}

t.test('S-75 an event, and a body, are reserved before they are complete', async (t) => {
  const { server, ...connection } = await open(t);
  const ways = [
    ['data: {"choices":[{"delta":{"content":"', {}],
    ['{"choices":[{"message":{"content":"', WHOLE],
    ['data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"clock","arguments":"', {}],
  ] as const;
  for (const [start, form] of ways) {
    const raw = endless(start);
    server.enqueue({ raw: endless(start) }, { raw });
    const large = turnWith(512 * MIB);
    t.match(await readError(connection, { ...large.request, ...form }), { message: /more than 16 MiB/ });
    t.ok(large.budget.report.peak >= Account.costOf(15 * MIB), `${large.budget.report.peak} bytes for ${start}`);
    const small = turnWith(16 * MIB);
    t.match(await readError(connection, { ...small.request, ...form }), { name: 'TurnError', message: /limits\.memory/ });
    t.ok(small.budget.report.peak <= 8 * MIB);
    for (const { budget, end } of [large, small]) {
      t.ok(budget.used <= 64 * 1024, 'nothing stays reserved');
      end();
      t.equal(budget.used, 0);
    }
  }
  for (const request of server.requests) t.equal(await request.ended, 'aborted');
});

t.test('S-75 signatures and names of calls count as their arguments do', async (t) => {
  const { server, ...connection } = await open(t);
  const call = (index: number, more: object) =>
    `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index, id: `c${index}`, function: { name: 'clock', arguments: '{}' }, ...more }] } }] })}\n\n`;
  const signed = { extra_content: { google: { thought_signature: 'x'.repeat(500_000) } } };
  server.enqueue({ raw: Array.from({ length: 40 }, (_, index) => call(index, signed)) });
  const turn = turnWith(512 * MIB);
  t.match(await readError(connection, turn.request), { message: /tool calls and reasoning of more than 16 MiB/ });
  t.ok(turn.budget.report.peak >= Account.costOf(15 * MIB));
  t.ok(turn.budget.used <= 64 * 1024);
});

t.test('S-75 a body of an error is read up to 64 KiB', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({ raw: endless('{"error":{"message":"'), status: 400, contentType: 'application/json' });
  const { message } = await readError(connection);
  t.match(message, /400/);
  t.ok(message.length < 2000);
  t.equal(await server.requests[0]?.ended, 'aborted');
});

t.test('S-75 an answer does not keep what surrounds its words in memory', async (t) => {
  const { server, connector } = await open(t);
  const words = 'some words that are longer than a slice';
  const event = (padding: string) =>
    `data: {"id":"c","choices":[{"index":0,"delta":{"content":"${words}"},"finish_reason":null}],"padding":"${padding}"}\n\n`;
  const filler = 'x'.repeat(60_000);
  const shapes = { comments: `: ${filler}\n\n${event('a')}`, padding: event(filler) };
  for (const [name, shape] of Object.entries(shapes)) {
    server.enqueue({
      raw: [
        ...Array.from({ length: 500 }, () => shape),
        'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      ],
    });
    const kept: ModelEvent[] = [];
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for await (const batch of connector.stream(modelRequest('Hi'), new AbortController().signal)) kept.push(...batch);
    collectGarbage();
    const grown = process.memoryUsage().heapUsed - before;
    t.equal(kept.filter(({ type }) => type === 'text').length, 500);
    t.ok(grown < 5 * MIB, `${grown} bytes for 20 KB of words among ${name}`);
  }
});

t.test('S-75 a cancelled answer, and one whose reader left, leave nothing', async (t) => {
  const { server, connector } = await open(t);
  for (const leaves of [false, true]) {
    server.enqueue({
      raw: ['data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n', 'data: {"a":"', 'x'.repeat(2 * MIB), new Promise(() => {})],
    });
    const { budget, request, end } = turnWith(512 * MIB);
    const abort = new AbortController();
    const events = connector.stream(modelRequest('Hi', request), abort.signal)[Symbol.asyncIterator]();
    await events.next();
    while (budget.used < Account.costOf(MIB)) await new Promise((resolve) => setImmediate(resolve));
    if (leaves) await events.return?.();
    else {
      abort.abort(new Error('cancelled'));
      await t.rejects(events.next(), { message: 'cancelled' });
    }
    t.ok(budget.used <= 64 * 1024);
    end();
    t.equal(budget.used, 0);
    t.equal(await server.requests.at(-1)?.ended, 'aborted');
  }
});
