/** Providers that send more than an answer may hold (S-75): it is refused, and nothing is left. */
import { Account } from '@plugboard/kernel/contracts';
import { modelRequest } from '@plugboard/testing';
import t from 'tap';
import { CLOCK, open, readAll, readError } from './connection.js';
import { assertRefused, hostile, MIB, turnWith } from './hostile-provider.js';
import { namedEvent } from './servers/native-server.js';

// One format of lines and the one of frames. The others: hostile.long.test.ts.
for (const name of ['anthropic', 'bedrock'] as const) {
  t.test(`S-75 ${name}: an event, an error body and a compressed answer without end are refused`, (t) => assertRefused(t, name));
}

/** The events of an answer of Anthropic with one block. */
function block(index: number, content_block: object, ...deltas: object[]): string[] {
  return [
    namedEvent({ type: 'content_block_start', index, content_block }),
    ...deltas.map((delta) => namedEvent({ type: 'content_block_delta', index, delta })),
    namedEvent({ type: 'content_block_stop', index }),
  ];
}
const usage = { input_tokens: 1, output_tokens: 1 };
const START = namedEvent({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], model: 'm', stop_reason: null, usage },
});
const END = [
  namedEvent({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 1 } }),
  namedEvent({ type: 'message_stop' }),
];
const toolUse = (index: number) => ({ type: 'tool_use', id: `toolu_${index}`, name: 'clock', input: {} });
const json = (partial_json: string) => ({ type: 'input_json_delta', partial_json });

t.test('S-75 calls without number, and arguments without end, are refused', async (t) => {
  const { server, ...claude } = await open(t, 'anthropic');
  const calls = (count: number) =>
    Array.from({ length: count }, (_, index) => block(index, toolUse(index), json('{}')).join('')).join('');
  server.enqueue({ frames: [START, calls(256), ...END] }, { frames: [START, calls(257), ...END] });
  const events = await readAll(claude, { tools: [CLOCK] });
  t.equal(events.filter(({ type }) => type === 'tool-call').length, 256);
  t.match(await readError(claude, { tools: [CLOCK] }), { message: /more than 256 tool calls in one answer/, retryable: false });
  const long = json('x'.repeat(200_000));
  for (const streamedTools of [[], ['clock']]) {
    server.enqueue({ frames: [START, ...block(0, toolUse(0), long, long, long, long, long, long), ...END] });
    t.match(await readError(claude, { tools: [CLOCK], streamedTools }), {
      message: /arguments of a tool call of more than 1 MiB/,
    });
  }
});

t.test('S-75 signatures and arguments are reserved while they are collected', async (t) => {
  const { server, ...claude } = await open(t, 'anthropic');
  const thinking = (index: number) =>
    block(
      index,
      { type: 'thinking', thinking: '' },
      { type: 'thinking_delta', thinking: 'Hm' },
      { type: 'signature_delta', signature: 'x'.repeat(500_000) },
    );
  const frames = [START, ...Array.from({ length: 20 }, (_, index) => thinking(index).join('')), ...END];
  server.enqueue({ frames }, { frames });
  const large = turnWith(512 * MIB);
  await readAll(claude, large.request);
  t.ok(large.budget.report.peak >= Account.costOf(20 * 500_000), `${large.budget.report.peak} bytes`);
  const small = turnWith(32 * MIB);
  t.match(await readError(claude, small.request), { name: 'TurnError', message: /limits\.memory/ });
  for (const { budget, end } of [large, small]) {
    t.ok(budget.used <= 64 * 1024);
    end();
  }
});

t.test('the frames and lines of honest answers count each for itself', async (t) => {
  for (const name of ['bedrock', 'anthropic', 'google'] as const) {
    const { server, ...connection } = await open(t, name);
    const turn = turnWith(512 * MIB);
    server.enqueue({ text: Array.from({ length: 3_000 }, (_, index) => `word ${index} `) });
    await readAll(connection, turn.request);
    t.ok(turn.budget.report.peak <= 2 * MIB, `${name}: ${turn.budget.report.peak} bytes for an answer of 3,000 events`);
  }
});

t.test('S-75 a cancelled answer, and one whose reader left, leave nothing', async (t) => {
  for (const leaves of [false, true]) {
    const { state, connector } = await hostile(t, 'google', async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}\n\n');
      response.write(`data: {"a":"${'x'.repeat(2 * MIB)}`);
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
    while (state.open > 0) await new Promise((resolve) => setImmediate(resolve));
  }
});
