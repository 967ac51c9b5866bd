import type { AgentEvent } from '@plugboard/kernel';
import type { AgentEvents } from '@plugboard/kernel/contracts';
import t from 'tap';
import { isChunk } from './support/reference-schema.js';
import {
  chunks,
  chunksOf,
  errorOf,
  events,
  finished,
  frames,
  NOW,
  type RouteOptions,
  says,
  startRoute,
  textOf,
} from './support/route.js';

const step = (step: number) => ({ type: 'step', step, connection: 'fast' }) as const;
const text = (text: string, json?: string) => ({ type: 'text', text, json }) as const;
const ownCall = {
  type: 'tool-call',
  id: 'c1',
  name: 'clock',
  arguments: '{}',
  tool: { entry: 'tools.clock', name: 'clock' },
} as const;
const ownResult = { type: 'tool-result', id: 'c1', content: '12:00', images: [], isError: false, milliseconds: 1 } as const;
const failure = { code: 'model_failed', message: 'The model connection fast failed.', toolsRan: false } as const;
const usage = { promptTokens: 10, completionTokens: 5, cachedTokens: 4, cacheWriteTokens: 0, reasoningTokens: 2 };

async function stream(batches: Iterable<readonly AgentEvent[]>, fields = {}, options: RouteOptions = {}) {
  return chunksOf(await startRoute({ batches, ...options }).ask({ stream: true, ...fields }));
}

t.test('C-090 C-091 C-092 C-094 a stream, byte for byte', async (t) => {
  const head = `"id":"chatcmpl-00000000000000000000000000001","object":"chat.completion.chunk","created":${NOW / 1000},"model":"assistant","service_tier":"default","system_fingerprint":"fp_0123456789ab"`;
  const chunk = (delta: string, reason = 'null') =>
    `data: {${head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${reason}}]}\n\n`;
  t.same(await stream(says('Hel', 'lo')), [
    chunk('{"role":"assistant","content":"","refusal":null}') + chunk('{"content":"Hel"}') + chunk('{"content":"lo"}'),
    `${chunk('{}', '"stop"')}data: [DONE]\n\n`,
  ]);
});

t.test('C-090 the headers come from the stream encoder', async (t) => {
  const reply = await startRoute().ask({ stream: true });
  t.equal(reply.status, 200);
  t.match(reply.headers, { 'content-type': 'text/event-stream; charset=utf-8' });
  t.equal(reply.keepAlive?.every, 15_000);
});

t.test('C-093 all chunks share id, time and model, and exactly one has a finish reason', async (t) => {
  const all = chunks(await stream([[step(1), ownCall], [ownResult, step(2), text('a')], [text('b')], [finished]]));
  t.equal(new Set(all.map(({ id, created, model, object }) => `${id} ${created} ${model} ${object}`)).size, 1);
  t.ok(all.every(({ choices }) => choices.length === 1 && choices[0]?.index === 0));
  t.same(
    all.map(({ choices }) => choices[0]?.finish_reason),
    [null, null, null, 'stop'],
  );
  t.same(
    all.map(({ choices }) => choices[0]?.delta.role),
    ['assistant', undefined, undefined, undefined],
  );
});

t.test('C-096 C-098 without include_usage no chunk has usage', async (t) => {
  for (const stream_options of [
    undefined,
    null,
    {},
    { include_usage: false, include_obfuscation: true },
    { include_usage: null },
  ]) {
    for (const chunk of chunks(await stream(says('a'), { stream_options }))) t.notOk('usage' in chunk);
  }
});

t.test('C-097 with include_usage every chunk has usage, which is null except in the last', async (t) => {
  const [start = [], said = []] = says('a');
  const all = frames(await stream([start, said, [{ ...finished, usage }]], { stream_options: { include_usage: true } }));
  t.equal(all.length, 5);
  for (const chunk of all.slice(0, 3)) t.match(chunk, { usage: null, choices: [{ index: 0 }] });
  t.match(all[3], { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
  t.equal(all[4], '[DONE]');
});

t.test('C-099 C-102 every chunk matches the reference’s schema and has no error', async (t) => {
  const turns = [
    says('Hello'),
    says(),
    [[step(1), text('Hm.'), ownCall], [ownResult], [step(2), text('Noon.')], [finished]],
    [[step(1), { ...ownCall, tool: undefined }], [{ ...finished, reason: 'tool_calls' }]],
    [[step(1), text('Cut')], [{ ...finished, reason: 'length' }]],
  ] satisfies AgentEvent[][][];
  for (const batches of turns) {
    for (const include_usage of [true, false]) {
      for (const chunk of chunks(await stream(batches, { stream_options: { include_usage } }))) {
        t.ok(isChunk(chunk), JSON.stringify(isChunk.errors));
        t.notOk('error' in chunk);
      }
    }
  }
});

t.test('C-100 the stream consists of non-empty data lines', async (t) => {
  const all = await stream([[step(1), text('line\nline\r\n')], [{ type: 'failed', failure }]]);
  for (const line of all.join('').split('\n').filter(Boolean)) t.match(line, /^data: [{[]/);
});

t.test('C-103 server tool calls, reasoning and progress are not sent', async (t) => {
  const all = chunks(
    await stream([
      [step(1), { type: 'reasoning', text: 'Hm.' }, ownCall],
      [{ type: 'tool-progress', id: 'c1', message: 'half' }, ownResult, { type: 'usage', usage }],
      [step(2), text('Noon.')],
      [finished],
    ]),
  );
  t.same(
    all.map(({ choices }) => choices[0]?.delta),
    [{ role: 'assistant', content: '', refusal: null }, { content: 'Noon.' }, {}],
  );
});

t.test('C-104 each visible batch is written as it arrives', async (t) => {
  const batches = [[step(1), text('a'), text('b')], [{ type: 'usage', usage }], [text('c')], [finished]] satisfies AgentEvent[][];
  const all = await stream(batches);
  t.equal(all.length, 3, 'one write for each batch with something to show');
  t.same(
    all.map((frames) => textOf([frames])),
    ['ab', 'c', ''],
  );
});

t.test('C-111 text keeps the model server’s escaping if available', async (t) => {
  const [first = ''] = await stream([[step(1), text('é\u2028', '\\u00e9\\u2028')], [finished]]);
  t.ok(first.includes('"content":"\\u00e9\\u2028"'));
  t.equal(textOf([first]), 'é\u2028');
});

t.test('escaped text is not decoded', async (t) => {
  const undecoded = {
    type: 'text',
    json: 'caf\\u00e9',
    get text(): string {
      throw new Error('decoded');
    },
  } as const;
  t.equal(textOf(await stream([[step(1), undecoded], [undecoded], [finished]])), 'cafécafé');
});

t.test('C-084 C-111 a long text is sent in pieces of whole characters', async (t) => {
  const long = `x${'😀'.repeat(10_000)}`;
  const all = await stream([[step(1), text(long)], [finished]]);
  t.equal(textOf(all), long);
  for (const chunk of chunks(all)) t.ok(chunk.choices[0]?.delta.content?.isWellFormed() ?? true);
  const lines = all.join('').split('\n');
  t.ok(lines.every((line) => Buffer.byteLength(line) < 64 * 1024));
  const control = '\u0001'.repeat(20_000);
  const worst = await stream([[step(1), text(control, JSON.stringify(control).slice(1, -1))], [finished]]);
  t.equal(textOf(worst), control);
  t.ok(
    worst
      .join('')
      .split('\n')
      .every((line) => Buffer.byteLength(line) < 64 * 1024),
  );
});

t.test('the text of a later step is separated from earlier text', async (t) => {
  const spoken = [[step(1), text('Let me look.'), ownCall], [ownResult], [step(2), text('It is '), text('noon.')], [finished]];
  t.equal(textOf(await stream(spoken)), 'Let me look.\n\nIt is noon.');
  const twice = [[step(1), text('One.'), ownCall, ownResult, step(2), ownCall, ownResult, step(3), text('Three.'), finished]];
  t.equal(textOf(await stream(twice)), 'One.\n\nThree.');
  const long = 'x'.repeat(9_000);
  t.equal(textOf(await stream([[step(1), text('One.'), ownCall, step(2), text(long), finished]])), `One.\n\n${long}`);
  const silent = [[step(1), ownCall], [ownResult], [step(2), text('Noon.'), finished]];
  t.equal(textOf(await stream(silent)), 'Noon.');
});

t.test('an empty text writes nothing', async (t) => {
  t.equal(chunks(await stream([[step(1), text('')], [text('a')], [finished]])).length, 3);
});

t.test('client tool calls are streamed, each with its index', async (t) => {
  const long = JSON.stringify({ text: 'y'.repeat(9_000) });
  const a = { type: 'tool-call', id: 'a', name: 'f', arguments: '{"x":1}' } as const;
  const b = { type: 'tool-call', id: 'b', name: 'g', arguments: long } as const;
  const all = chunks(await stream([[step(1), text('So: '), ownCall, a, b], [{ ...finished, reason: 'tool_calls' }]]));
  const calls = all.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  t.same(calls.slice(0, 3), [
    { index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } },
    { index: 0, function: { arguments: '{"x":1}' } },
    { index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '' } },
  ]);
  const rest = calls.slice(3) as { index: number; function: { arguments: string } }[];
  t.ok(rest.every(({ index }) => index === 1));
  t.equal(rest.map((call) => call.function.arguments).join(''), long);
  t.equal(all.at(-1)?.choices[0]?.finish_reason, 'tool_calls');
});

t.test('C-104 arguments of client tool calls are streamed as they come, then what is left', async (t) => {
  const piece = (id: string, text: string) => ({ type: 'tool-call-delta', id, name: 'f', arguments: text }) as const;
  const call = (id: string, text: string) => ({ type: 'tool-call', id, name: 'f', arguments: text }) as const;
  const batches: AgentEvent[][] = [
    [step(1), piece('a', ''), piece('a', '{"x"')],
    [piece('b', '{"y"'), piece('a', ':1')],
    [call('a', '{"x":1}'), call('b', '{"y":2}'), call('c', '{}'), { ...finished, reason: 'tool_calls' }],
  ];
  const calls = chunks(await stream(batches)).flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  const opening = (index: number, id: string) => ({ index, id, type: 'function', function: { name: 'f', arguments: '' } });
  const delta = (index: number, text: string) => ({ index, function: { arguments: text } });
  t.same(calls, [
    opening(0, 'a'),
    delta(0, '{"x"'),
    opening(1, 'b'),
    delta(1, '{"y"'),
    delta(0, ':1'),
    delta(0, '}'),
    delta(1, ':2}'),
    opening(2, 'c'),
    delta(2, '{}'),
  ]);
});

t.test('a call that is cut off has no more than it had', async (t) => {
  const cut = { type: 'tool-call-delta', id: 'a', name: 'f', arguments: '{"x"' } as const;
  const all = chunks(await stream([[step(1), cut], [{ ...finished, reason: 'length' }]]));
  t.equal(all.at(-1)?.choices[0]?.finish_reason, 'length');
  t.equal(all.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []).length, 2);
  const failing = frames(await stream([[step(1), cut], [{ type: 'failed', failure }]]));
  t.match(failing.at(-2), { error: { message: failure.message } });
});

t.test('C-107 a failure before the first visible event sets the status', async (t) => {
  const { ask, notes } = startRoute({
    batches: [[step(1), ownCall], [ownResult], [{ type: 'failed', failure: { ...failure, toolsRan: true } }]],
  });
  const error = await errorOf(ask({ stream: true }));
  t.equal(error.status, 502);
  t.same(error.body, { error: { message: failure.message, type: 'svc_error' } });
  t.same(error.headers, { 'x-should-retry': 'false' });
  t.match(notes, { steps: 1, tool_calls: 1, outcome: 'agent_error' });
});

t.test('C-108 a failure after the head is one error frame followed by [DONE]', async (t) => {
  const all = frames(await stream([[step(1), text('Half an')], [{ type: 'failed', failure }]]));
  t.same(all.slice(2), [{ error: { message: failure.message, type: 'svc_error' } }, '[DONE]']);
  // A stream has no header for the wait. Where tools have run, a repeat is not suggested.
  for (const [toolsRan, message] of [
    [false, `${failure.message} Please try again in 3s.`],
    [true, failure.message],
  ] as const) {
    const waiting = { type: 'failed', failure: { ...failure, retryAfter: 2.5, toolsRan } } as const;
    t.same(frames(await stream([[step(1), text('Half an')], [waiting]]))[2], { error: { message, type: 'svc_error' } });
  }
});

t.test('C-108 an error frame has the same error object as the error response', async (t) => {
  const busy = { code: 'session_busy', message: 'Busy.', toolsRan: false } as const;
  const all = frames(await stream([[step(1), text('a')], [{ type: 'failed', failure: busy }]]));
  t.same(all.at(-2), { error: { message: 'Busy.', type: 'invalid_request_error', param: null, code: 'session_busy' } });
});

t.test('C-109 events without a terminal event destroy the stream', async (t) => {
  await t.rejects(stream([], {}, { run: () => events([[step(1), text('Half an')]]) }), /without a terminal event/);
});

t.test('the head is sent with the first visible event, at the latest after 5 s', async (t) => {
  const { ask, clock } = startRoute({ run: () => slow.events });
  const slow = held();
  const asked = ask({ stream: true });
  await slow.isRead;
  clock.advance(4_999);
  t.equal(await Promise.race([asked, nothing()]), undefined);
  clock.advance(1);
  const reply = await asked;
  t.notOk(reply.headers?.['x-model-connection'], 'no connection has answered yet');
  const body = (reply.body as AsyncIterable<string>)[Symbol.asyncIterator]();
  const opening = String((await body.next()).value);
  t.match(chunks([opening]), [{ choices: [{ delta: { role: 'assistant' } }] }], 'the opening goes out at once');
  t.match(opening, /\n\n: queued\n\n$/);
  t.equal(reply.keepAlive?.text, ': queued\n\n');
  slow.release([[step(1), text('Late.')], [finished]]);
  t.equal(textOf([(await body.next()).value]), 'Late.');
  t.equal(reply.keepAlive?.text, ': keep-alive\n\n');
  t.match((await body.next()).value, /\[DONE\]/);
  t.ok((await body.next()).done);
});

t.test('C-108 a failure after the head was sent by timeout is an error frame', async (t) => {
  const slow = held();
  const { ask, clock, notes } = startRoute({ run: () => slow.events });
  const asked = ask({ stream: true });
  await slow.isRead;
  clock.advance(5_000);
  const reply = await asked;
  slow.release([[{ type: 'failed', failure: { ...failure, code: 'timed_out' } }]]);
  t.same(frames(await chunksOf(reply)).slice(1), [{ error: { message: failure.message, type: 'svc_error' } }, '[DONE]']);
  t.match(notes, { outcome: 'timeout' });
});

t.test('C-010 a disconnect ends the turn’s iterator and is logged', async (t) => {
  let left = false;
  async function* endless(): AsyncGenerator<readonly AgentEvent[]> {
    try {
      yield [step(1)];
      for (;;) yield [text('and ')];
    } finally {
      left = true;
    }
  }
  const { ask, notes } = startRoute({ run: endless });
  const reply = await ask({ stream: true });
  for await (const _ of reply.body as AsyncIterable<string>) break;
  t.ok(left);
  t.match(notes, { agent: 'assistant', stream: true, steps: 1 });
});

/** Events that come only when the test lets them. */
function held() {
  let release: (batches: readonly (readonly AgentEvent[])[]) => void = () => {};
  let read: () => void = () => {};
  const isRead = new Promise<void>((resolve) => {
    read = resolve;
  });
  const released = new Promise<readonly (readonly AgentEvent[])[]>((resolve) => {
    release = resolve;
  });
  async function* wait(): AgentEvents & AsyncGenerator<readonly AgentEvent[]> {
    read();
    yield* await released;
  }
  return { events: wait(), isRead, release };
}

/** What is there after every promise that could be settled by now has been. */
function nothing(): Promise<undefined> {
  return new Promise((resolve) => setImmediate(resolve, undefined));
}
