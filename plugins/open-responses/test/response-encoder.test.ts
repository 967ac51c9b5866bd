import assert from 'node:assert/strict';
import type { AgentEvent } from '@plugboard/kernel';
import { type Failure, failed, type TurnFinished } from '@plugboard/kernel/contracts';
import t from 'tap';
import { outcomeOfFailure } from '../src/events/outcome.js';
import type { EndedResponse } from '../src/events/replay.js';
import { type EncoderOptions, ResponseEncoder } from '../src/events/response-encoder.js';
import { replayEvents, typeOfEvent } from '../src/index.js';
import { ECHO } from './support/echo.js';
import { assertGrammar, type SentEvent } from './support/events.js';

const HEAD = { id: 'resp_abc', createdAt: 1000, model: 'helper', agent: 'assistant', echo: ECHO };
const USAGE = { promptTokens: 120, completionTokens: 18, cachedTokens: 4, cacheWriteTokens: 0, reasoningTokens: 2 };
const step = (step: number) => ({ type: 'step', step, connection: 'fast' }) as const;
const text = (text: string, json?: string) => ({ type: 'text', text, json }) as const;
const reasoning = (text: string) => ({ type: 'reasoning', text }) as const;
const call = (id: string, args = '{"tz":"UTC"}') =>
  ({ type: 'tool-call', id, name: 'clock__get_time', arguments: args, tool: { entry: 'clock', name: 'get_time' } }) as const;
const clientCall = (id: string, args = '{"city":"Paris"}') =>
  ({ type: 'tool-call', id, name: 'weather', arguments: args }) as const;
const result = (id: string, content = '12:00', isError = false) =>
  ({ type: 'tool-result', id, content, images: [], isError, milliseconds: 3 }) as const;
const usage = { type: 'usage', usage: USAGE } as const;
const finished = (reason: TurnFinished['reason'] = 'stop', limit?: TurnFinished['limit']) =>
  ({ type: 'finished', reason, limit, usage: USAGE }) as const;

interface Written {
  readonly events: readonly SentEvent[];
  readonly types: readonly string[];
  readonly response: NonNullable<SentEvent['response']>;
}

function encoderOf(options: Partial<EncoderOptions> = {}): ResponseEncoder {
  return new ResponseEncoder(HEAD, { visibility: 'full', showsReasoning: false, extensions: false, now: () => 1002, ...options });
}

/**
 * All events of a response to these batches, checked for the rules that hold for every response.
 */
function written(
  batches: readonly (readonly AgentEvent[])[],
  end: TurnFinished | Failure = finished(),
  options: Partial<EncoderOptions> = {},
): Written {
  const encoder = encoderOf({ showsReasoning: true, ...options });
  const texts = encoder.begin('in_progress');
  for (const batch of [...batches, ['type' in end ? end : failed(end)]]) texts.push(...encoder.write(batch));
  const events = texts.map((json) => JSON.parse(json) as SentEvent);
  assertGrammar(events);
  const response = events.at(-1)?.response;
  if (!response) throw new Error('the terminal event has no response');
  assertReplayed(events, response);
  return { events, types: texts.map(typeOfEvent), response };
}

/** C-224: a replayed response has the same events, with fewer deltas, one item after the other. */
function assertReplayed(events: readonly SentEvent[], response: EndedResponse): void {
  const replayed = replayEvents(response).map((json) => JSON.parse(json) as SentEvent);
  assertGrammar(replayed);
  assert.deepEqual(byItem(replayed), byItem(events.filter(({ type }) => !type.startsWith('svc:'))));
  assert.deepEqual(replayed.at(-1)?.response, response);
}

/** The events of each item, with their deltas joined, without their numbers. */
function byItem(events: readonly SentEvent[]): readonly (readonly object[])[] {
  const items: SentEvent[][] = [];
  for (const { sequence_number: _, stream_id: __, ...event } of events) {
    if (event.output_index === undefined) continue;
    items[event.output_index] ??= [];
    const own = items[event.output_index] ?? [];
    const last = own.at(-1);
    if (last?.type === event.type && event.delta !== undefined)
      own[own.length - 1] = { ...last, delta: `${last.delta}${event.delta}` };
    else own.push(event as SentEvent);
  }
  return items;
}

const failure = (code: Failure['code']): Failure => ({ code, message: `failed with ${code}`, toolsRan: false });

t.test('a tool call and an answer, as the protocol’s example shows them', async (t) => {
  const { types, events, response } = written([[step(1), call('c1')], [result('c1'), step(2), text('It is ')], [text('noon.')]]);
  t.same(types, [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.mcp_call.in_progress',
    'response.mcp_call_arguments.delta',
    'response.mcp_call_arguments.done',
    'response.mcp_call.completed',
    'response.output_item.done',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ]);
  t.same(events[2]?.item, {
    id: 'mcp_abc_0',
    type: 'mcp_call',
    server_label: 'clock',
    name: 'get_time',
    arguments: '',
    status: 'in_progress',
    output: null,
    error: null,
    approval_request_id: null,
  });
  t.same(response.output, [
    {
      id: 'mcp_abc_0',
      type: 'mcp_call',
      server_label: 'clock',
      name: 'get_time',
      arguments: '{"tz":"UTC"}',
      status: 'completed',
      output: '12:00',
      error: null,
      approval_request_id: null,
    },
    {
      id: 'msg_abc_1',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'It is noon.', annotations: [], logprobs: [] }],
    },
  ]);
  t.match(response, {
    id: 'resp_abc',
    status: 'completed',
    created_at: 1000,
    completed_at: 1002,
    error: null,
    incomplete_details: null,
  });
  t.same(response.usage, {
    input_tokens: 120,
    input_tokens_details: { cached_tokens: 4, cache_write_tokens: 0 },
    output_tokens: 18,
    output_tokens_details: { reasoning_tokens: 2 },
    total_tokens: 138,
  });
});

t.test('the response has every field that the protocol requires', async (t) => {
  const { events, response } = written([[step(1), text('Hello.')]]);
  const required =
    'id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key';
  for (const shown of [events[0]?.response, response])
    t.same(
      required.split(' ').filter((name) => !(name in (shown ?? {}))),
      [],
    );
  t.match(events[0]?.response, { status: 'in_progress', completed_at: null, output: [], usage: null });
});

t.test('text goes through as the model server escaped it', async (t) => {
  const { response, events } = written([[step(1), text('never decoded', '\\u00e4 \\"x\\"\\n')], [text('\u2028"ö\n')]]);
  t.equal(events.find(({ type }) => type === 'response.output_text.delta')?.delta, 'ä "x"\n');
  t.match(response.output[0]?.content, [{ text: 'ä "x"\n\u2028"ö\n' }]);
});

t.test('each step has its own message item, and a step without text has none', async (t) => {
  const { response } = written([
    [step(1), text('Let me look.'), call('c1')],
    [result('c1'), step(2), text(''), call('c2')],
    [result('c2'), step(3), text('Done.')],
  ]);
  t.same(
    response.output.map(({ type }) => type),
    ['message', 'mcp_call', 'mcp_call', 'message'],
  );
});

t.test('parallel calls are open side by side, each under its own index', async (t) => {
  const { events, response } = written([
    [step(1), call('c1'), call('c2', '')],
    [result('c1', 'one'), result('c2', 'no', true)],
    [step(2), text('x')],
  ]);
  t.same(
    events.filter(({ type }) => /mcp_call\.(completed|failed)/.test(type)).map(({ type, output_index }) => [type, output_index]),
    [
      ['response.mcp_call.completed', 0],
      ['response.mcp_call.failed', 1],
    ],
  );
  t.match(response.output[1], {
    status: 'failed',
    output: null,
    error: { type: 'mcp_tool_execution_error', content: [{ type: 'text', text: 'no' }] },
  });
});

t.test('toolVisibility: names hides arguments and results, none hides the calls', async (t) => {
  const batches = [
    [step(1), call('c1', '{"secret":1}'), call('c2')],
    [result('c1', 'secret'), result('c2', 'secret', true), step(2), text('x')],
  ];
  const names = written(batches, finished(), { visibility: 'names', extensions: true });
  t.match(names.response.output, [
    { type: 'mcp_call', name: 'get_time', arguments: '', output: null, error: null, status: 'completed' },
    { type: 'mcp_call', output: null, status: 'failed' },
    { type: 'message' },
  ]);
  t.notMatch(JSON.stringify(names.events), /secret/);
  const none = written(batches, finished(), { visibility: 'none', extensions: true });
  t.same(
    none.response.output.map(({ type }) => type),
    ['message'],
  );
  t.notMatch(JSON.stringify(none.events), /mcp|secret|get_time/);
});

t.test('R-044 callers are shown at most 16 KiB of a result, whole characters, and how much was left out', async (t) => {
  const { response } = written([[step(1), call('c1')], [result('c1', 'ä'.repeat(50_000))]]);
  const output = String(response.output[0]?.output);
  t.ok(Buffer.byteLength(output) <= 16 * 1024);
  const [, kept = '', left] = /^(ä+)\n… \[truncated (\d+) bytes\]$/.exec(output) ?? [];
  t.equal(Buffer.byteLength(kept) + Number(left), 100_000);
  const whole = written([[step(1), call('c1')], [result('c1', 'x'.repeat(16_384))]]);
  t.equal(whole.response.output[0]?.output, 'x'.repeat(16_384));
});

t.test('calls of the caller’s own tools are function calls, beside the server’s', async (t) => {
  const { types, response } = written(
    [[step(1), text('One moment.'), clientCall('call_1'), call('c1'), clientCall('call_2', '')], [result('c1')]],
    finished('tool_calls'),
  );
  t.match(response, { status: 'completed' });
  t.match(response.output, [
    { type: 'message' },
    {
      type: 'function_call',
      id: 'fc_abc_1',
      call_id: 'call_1',
      name: 'weather',
      arguments: '{"city":"Paris"}',
      status: 'completed',
    },
    { type: 'mcp_call' },
    { type: 'function_call', call_id: 'call_2', arguments: '' },
  ]);
  t.same(
    types.filter((type) => type.includes('function_call')),
    ['response.function_call_arguments.delta', 'response.function_call_arguments.done', 'response.function_call_arguments.done'],
  );
});

t.test('reasoning is a separate item if it is shown', async (t) => {
  const batches = [[step(1), reasoning('Hm, "so"'), reasoning(''), reasoning('.'), text('Yes.')]];
  const shown = written(batches);
  t.match(shown.response.output, [
    { type: 'reasoning', id: 'rs_abc_0', summary: [{ type: 'summary_text', text: 'Hm, "so".' }], status: 'completed' },
    { type: 'message' },
  ]);
  t.ok(shown.types.includes('response.reasoning_summary_part.added'));
  const hidden = written(batches, finished(), { showsReasoning: false });
  t.same(
    hidden.response.output.map(({ type }) => type),
    ['message'],
  );
});

t.test('a budget that ends the turn is an incomplete response with its name; what was said is whole', async (t) => {
  for (const [limit, reason] of [
    ['max_steps', 'max_steps'],
    ['max_tool_calls', 'max_tool_calls'],
  ] as const) {
    const { response, types } = written([[step(1), text('So far.')]], finished('length', limit));
    t.match(response, { status: 'incomplete', incomplete_details: { reason }, completed_at: null });
    t.equal(types.at(-1), 'response.incomplete');
    t.equal(response.output[0]?.status, 'completed');
  }
  for (const end of [finished('length', 'max_tokens'), finished('length')]) {
    const { response } = written([[step(1), text('So f')]], end);
    t.match(response, { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    t.equal(response.output[0]?.status, 'incomplete');
  }
  t.match(written([[step(1)]], finished('content_filter')).response, { incomplete_details: { reason: 'content_filter' } });
});

t.test('a turn that fails is a failed response with the failure’s code', async (t) => {
  const { response, types } = written([[step(1), text('It '), usage]], failure('model_failed'));
  t.equal(types.at(-1), 'response.failed');
  t.match(response, { status: 'failed', error: { code: 'model_failed', message: 'failed with model_failed' } });
  t.match(response.usage, { total_tokens: 138 }, 'tokens that were reported before are counted');
  t.equal(response.output[0]?.status, 'incomplete');
});

t.test('a turn that was ended from outside is incomplete, with the reason', async (t) => {
  for (const [code, reason] of [
    ['turn_cancelled', 'cancelled'],
    ['turn_interrupted', 'interrupted'],
    ['stopped', 'shutdown'],
  ] as const) {
    const { response } = written([[step(1), call('c1')]], failure(code));
    t.match(response, { status: 'incomplete', incomplete_details: { reason }, error: null, usage: null });
    t.match(response.output, [{ type: 'mcp_call', status: 'incomplete', output: null }]);
  }
});

t.test('stream_id is repeated in every event', async (t) => {
  const { events } = written([[step(1), reasoning('a'), text('a'), call('c'), clientCall('d')], [result('c')]], finished(), {
    streamId: 'lane "1"',
  });
  t.ok(events.every(({ stream_id }) => stream_id === 'lane "1"'));
});

t.test('a response that waits is queued first, and numbers go on', async (t) => {
  const encoder = encoderOf({ extensions: true, conversation: 'alice:"42"' });
  const texts = [
    ...encoder.begin('queued', { ahead: 2 }),
    ...encoder.write([{ type: 'started', turnId: 't', agent: 'a', turn: 7 }]),
  ];
  t.match(
    texts.map((json) => JSON.parse(json)),
    [
      { type: 'response.created', sequence_number: 0, response: { status: 'queued' } },
      { type: 'response.queued', sequence_number: 1, response: { status: 'queued' } },
      { type: 'svc:queue.position', sequence_number: 2, position: 2 },
      { type: 'response.in_progress', sequence_number: 3, response: { status: 'in_progress' } },
      { type: 'svc:session.state', sequence_number: 4, conversation: 'alice:"42"', state: 'running', turn: 7 },
    ],
  );
});

t.test('progress of tools is an extension, and numbers stay consecutive without it', async (t) => {
  const progress = { type: 'tool-progress', id: 'c1', message: 'page 3 of 10', fraction: 0.3 } as const;
  const vague = { type: 'tool-progress', id: 'c1', message: 'still "going"' } as const;
  const batches = [[step(1), call('c1'), progress, vague, result('c1')]];
  t.match(
    written(batches, finished(), { extensions: true }).events.filter(({ type }) => type.startsWith('svc:')),
    [
      { type: 'svc:tool_call.progress', item_id: 'mcp_abc_0', message: 'page 3 of 10', progress: 0.3 },
      { type: 'svc:tool_call.progress', message: 'still "going"', progress: undefined },
    ],
  );
  t.notOk(written(batches).types.some((type) => type.startsWith('svc:')));
});

t.test('the text of a batch is one event', async (t) => {
  const encoder = encoderOf();
  const batch = [step(1), text('a'), text('b', 'b'), call('c'), text('d'), text('e')];
  const deltas = encoder
    .write(batch)
    .map((json) => JSON.parse(json))
    .filter(({ type }) => type === 'response.output_text.delta');
  t.same(
    deltas.map(({ delta }) => delta),
    ['ab', 'de'],
  );
});

t.test('a running response can be shown in its current state', async (t) => {
  const encoder = encoderOf();
  encoder.begin('queued');
  t.match(JSON.parse(encoder.snapshot()), { status: 'queued', output: [], usage: null });
  encoder.write([{ type: 'started', turnId: 't', agent: 'a' }]);
  encoder.write([step(1), usage, text('It '), call('c1')]);
  encoder.write([result('c1'), step(2), usage, text('is')]);
  t.match(JSON.parse(encoder.snapshot()), {
    status: 'in_progress',
    completed_at: null,
    usage: { total_tokens: 276 },
    output: [
      { type: 'message', status: 'completed', content: [{ text: 'It ' }] },
      { type: 'mcp_call', status: 'completed' },
      { type: 'message', status: 'in_progress', content: [{ text: 'is' }] },
    ],
  });
});

t.test('a refusal of the model is a message of its own, with a refusal part', async (t) => {
  const { types, response } = written([
    [step(1), text('Hm.'), { type: 'text', text: 'I "can', isRefusal: true }],
    [{ type: 'text', text: 'not".', isRefusal: true }],
  ]);
  t.match(response.output, [
    { type: 'message', content: [{ type: 'output_text', text: 'Hm.' }] },
    { type: 'message', status: 'completed', content: [{ type: 'refusal', refusal: 'I "cannot".' }] },
  ]);
  t.same(
    types.filter((type) => type.includes('refusal')),
    ['response.refusal.delta', 'response.refusal.delta', 'response.refusal.done'],
  );
});

t.test('C-224 a long text is replayed in pieces that split no character', async (t) => {
  const long = `${'x'.repeat(4095)}😀`.repeat(3);
  const { response } = written([[step(1), text(long)]]);
  const deltas = replayEvents(response).flatMap((json) => (JSON.parse(json) as SentEvent).delta ?? []);
  t.equal(deltas.length, 4);
  t.equal(deltas.join(''), long);
  t.ok(deltas.every((delta) => delta.isWellFormed()));
});

t.test('C-104 the arguments of client calls are written as they come, then what is left', async (t) => {
  const piece = (id: string, text: string) => ({ type: 'tool-call-delta', id, name: 'weather', arguments: text }) as const;
  const batches: AgentEvent[][] = [
    [step(1), text('Let me look.'), piece('a', ''), piece('a', '{"city"')],
    [piece('b', '{"city":'), piece('a', ':"\n')],
    [clientCall('a', '{"city":"\n"}'), clientCall('b', '{"city":"Oslo"}'), clientCall('c', '{}')],
  ];
  const { events, response } = written(batches, finished('tool_calls'));
  t.same(
    events.filter(({ item_id: id }) => id === 'fc_abc_1').map(({ type, delta }) => [type, delta]),
    [
      ['response.function_call_arguments.delta', '{"city"'],
      ['response.function_call_arguments.delta', ':"\n'],
      ['response.function_call_arguments.delta', '"}'],
      ['response.function_call_arguments.done', undefined],
    ],
  );
  t.match(events.find(({ output_index: index, type }) => index === 1 && type === 'response.output_item.added')?.item, {
    call_id: 'a',
    name: 'weather',
    arguments: '',
    status: 'in_progress',
  });
  t.match(response.output, [
    { type: 'message' },
    { call_id: 'a', arguments: '{"city":"\n"}', status: 'completed' },
    { call_id: 'b', arguments: '{"city":"Oslo"}' },
    { call_id: 'c', arguments: '{}' },
  ]);
});

t.test('a client call that the model did not complete is incomplete', async (t) => {
  const piece = { type: 'tool-call-delta', id: 'a', name: 'weather', arguments: '{"city"' } as const;
  const { types, response } = written([[step(1), piece]], finished('length'));
  t.same(response.output, [
    { id: 'fc_abc_0', type: 'function_call', status: 'incomplete', call_id: 'a', name: 'weather', arguments: '{"city"' },
  ]);
  t.notOk(types.includes('response.function_call_arguments.done'));
});

t.test('CL-8 to Codex, a failure after tools ran is final, whatever it was', async (t) => {
  const failure = { code: 'rate_limited', message: 'Too fast.', toolsRan: false, retryAfter: 1.2 } as const;
  const of = (more: Partial<Failure>) => outcomeOfFailure({ ...failure, ...more }, undefined, true).error;
  t.same(of({}), { code: 'rate_limit_exceeded', message: 'Too fast. Please try again in 2s.' });
  t.same(of({ toolsRan: true }), { code: 'invalid_prompt', message: 'Too fast.' });
  t.match(
    of({ code: 'model_failed', retryable: true, retryAfter: undefined }),
    { code: 'model_failed' },
    'it repeats the request after it',
  );
  t.match(of({ code: 'model_failed', retryable: true, toolsRan: true }), { code: 'invalid_prompt' });
  t.same(of({ code: 'crashed' }), { code: 'invalid_prompt', message: 'Too fast.' });
});
