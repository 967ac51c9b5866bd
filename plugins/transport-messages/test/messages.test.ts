import assert from 'node:assert/strict';
import type { AgentEvent } from '@plugboard/kernel';
import { NO_USAGE, OPEN } from '@plugboard/kernel/contracts';
import fc from 'fast-check';
import t from 'tap';
import { SIGNATURE } from '../src/request/content.js';
import {
  eventsOf,
  finished,
  type RouteOptions,
  refusalOf,
  type SentEvent,
  started,
  startRoutes,
  step,
  text,
  turnOf,
} from './support/route.js';

const own: AgentEvent = {
  type: 'tool-call',
  id: 'call_1',
  name: 'files__find',
  arguments: '{"q":1}',
  tool: { entry: 'files', name: 'find' },
};
const ownResult: AgentEvent = {
  type: 'tool-result',
  id: 'call_1',
  content: 'found',
  images: [],
  isError: false,
  milliseconds: 1,
};
const clientCall: AgentEvent = { type: 'tool-call', id: 'call_2', name: 'read', arguments: '{"path":"x"}' };
const usage = { promptTokens: 100, completionTokens: 7, cachedTokens: 40, cacheWriteTokens: 0, reasoningTokens: 2 };
const MCP = { 'anthropic-beta': 'oauth-2025-04-20,mcp-client-2025-11-20' };

const whole = async (batches: AgentEvent[][], fields: object = {}, headers = {}, more: RouteOptions = {}) =>
  (await startRoutes({ batches, ...more }).post(fields, headers)).body as Readonly<Record<string, unknown>>;
const streamed = async (batches: AgentEvent[][], fields: object = {}, headers = {}, more: RouteOptions = {}) =>
  eventsOf(await startRoutes({ batches, ...more }).post({ stream: true, ...fields }, headers));

/** The message that the events of a stream amount to, as an SDK builds it. */
function folded(events: readonly SentEvent[]): Record<string, unknown> {
  let message: Record<string, unknown> = {};
  const content: Record<string, unknown>[] = [];
  for (const { type, index, ...event } of events) {
    const block = content[index as number] ?? {};
    if (type === 'message_start') message = event.message as Record<string, unknown>;
    else if (type === 'content_block_start') {
      if (index !== content.length) throw new Error(`block ${index} after ${content.length} blocks`);
      content.push({ ...(event.content_block as object) });
    } else if (type === 'content_block_delta') {
      const delta = event.delta as Record<string, string>;
      if (delta.type === 'text_delta') block.text += delta.text ?? '';
      if (delta.type === 'thinking_delta') block.thinking += delta.thinking ?? '';
      if (delta.type === 'signature_delta') block.signature = delta.signature;
      if (delta.type === 'input_json_delta') block.json = (block.json ?? '') + (delta.partial_json ?? '');
    } else if (type === 'message_delta') {
      const { delta, usage } = event as { delta?: object; usage?: object };
      message = { ...message, ...delta, usage: { ...(message.usage as object), ...usage } };
    }
  }
  const read = content.map(({ json, ...block }) => (json === undefined ? block : { ...block, input: JSON.parse(String(json)) }));
  return { ...message, content: read };
}

t.test('CL-20 a whole answer is a message', async (t) => {
  const { post, turns } = startRoutes({ batches: [[started], [step(1), text('Hel'), text('lo')], [{ ...finished, usage }]] });
  const reply = await post({ model: 'assistant/ä' });
  t.equal(reply.status, 200);
  t.match(reply.headers, { 'request-id': /^req_/, 'x-model-connection': 'fast' });
  t.match(reply.body, { id: /^msg_\w{24}$/ });
  t.strictSame(
    { ...(reply.body as object), id: '' },
    {
      id: '',
      type: 'message',
      role: 'assistant',
      model: 'assistant/ä',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 60,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 40,
        output_tokens: 7,
        service_tier: 'standard',
      },
    },
  );
  t.match(turns, [{ incremental: false, messages: [{ role: 'user', content: 'Hi' }], session: undefined }]);
});

t.test('CL-20 a stream has the events of the protocol in their order', async (t) => {
  const call = { ...clientCall };
  const events = await streamed([[started], [step(1), text('a"b')], [call, { ...finished, reason: 'tool_calls', usage }]]);
  t.match(events, [
    {
      type: 'message_start',
      message: { id: /^msg_/, role: 'assistant', content: [], stop_reason: null, usage: { output_tokens: 0 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a"b' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'call_2', name: 'read', input: {} } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"path":"x"}' } },
    { type: 'content_block_stop', index: 1 },
    {
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { input_tokens: 60, cache_read_input_tokens: 40, output_tokens: 7 },
    },
    { type: 'message_stop' },
  ]);
  t.equal(events.length, 9);
});

t.test('tokens that were written to the cache are counted apart, as those that were read', async (t) => {
  const written = { ...usage, cacheWriteTokens: 30 };
  const { post } = startRoutes({ batches: [[started], [step(1), text('Hello')], [{ ...finished, usage: written }]] });
  t.match((await post({})).body, {
    usage: { input_tokens: 30, cache_creation_input_tokens: 30, cache_read_input_tokens: 40, output_tokens: 7 },
  });
});

t.test('CL-20 a ping keeps a silent stream alive', async (t) => {
  const { post } = startRoutes({ batches: [[started, step(1), finished]] });
  const { headers, keepAlive } = await post({ stream: true });
  t.match(headers, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': /no-cache/,
    'x-accel-buffering': 'no',
  });
  t.match(keepAlive, { every: 15_000, text: 'event: ping\ndata: {"type":"ping"}\n\n' });
});

t.test('CL-20 the stop reason says why the answer ended', async (t) => {
  const stopOf = async (end: Partial<typeof finished>, ...events: AgentEvent[]) =>
    (await whole([[started], [step(1), ...events], [{ ...finished, ...end }]])).stop_reason;
  t.equal(await stopOf({}), 'end_turn');
  t.equal(await stopOf({ reason: 'length' }), 'max_tokens');
  t.equal(await stopOf({ reason: 'content_filter' }), 'refusal');
  t.equal(await stopOf({}, { type: 'text', text: 'No.', isRefusal: true }), 'refusal');
  t.equal(await stopOf({ reason: 'tool_calls' }, clientCall), 'tool_use');
  const stopped: AgentEvent[][] = [[started], [step(1), text('1 2')], [{ ...finished, stopSequence: '3' }]];
  t.match(await whole(stopped), { stop_reason: 'stop_sequence', stop_sequence: '3' });
  const events = await eventsOf(await startRoutes({ batches: stopped }).post({ stream: true }));
  t.match(events.at(-2), { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: '3' } });
});

t.test('CL-20 arguments that are not a JSON object are wrapped', async (t) => {
  const inputOf = async (text: string) => {
    const call: AgentEvent = { ...clientCall, arguments: text };
    const { content } = await whole([[started], [step(1), call, { ...finished, reason: 'tool_calls' }]]);
    return (content as readonly { readonly input: unknown }[])[0]?.input;
  };
  t.strictSame(await inputOf(''), {});
  t.strictSame(await inputOf('{"a":'), { INVALID_JSON: '{"a":' });
  t.strictSame(await inputOf('[1]'), { INVALID_JSON: '[1]' });
});

t.test('CL-20 the arguments of a call are streamed as the model writes them, one block after the other', async (t) => {
  const piece = (id: string, args: string): AgentEvent => ({ type: 'tool-call-delta', id, name: 'read', arguments: args });
  const call = (id: string, args: string): AgentEvent => ({ type: 'tool-call', id, name: 'read', arguments: args });
  const events = await streamed([
    [started],
    [step(1), text('x'), piece('a', '')],
    [piece('a', '{"path"')],
    [piece('b', '{"n"'), text('y'), piece('a', ':1')],
    [call('a', '{"path":1}'), call('b', '{"n":2}'), { ...finished, reason: 'tool_calls' }],
  ]);
  const pieces = events.flatMap(({ delta }) => (delta as { partial_json?: string } | undefined)?.partial_json ?? []);
  t.strictSame(pieces, ['{"path"', ':1', '}', '{"n"', ':2}']);
  let open: unknown;
  for (const { type, index } of events) {
    if (type === 'content_block_start') {
      t.equal(open, undefined, 'one block at a time');
      open = index;
    } else if (type === 'content_block_delta') t.equal(index, open);
    else if (type === 'content_block_stop') open = undefined;
  }
  const content = folded(events).content as readonly { readonly type: string }[];
  t.strictSame(
    content.map(({ type }) => type),
    ['text', 'tool_use', 'tool_use', 'text'],
  );
  const cut = await streamed([[started], [step(1), piece('a', '{"pa')], [{ ...finished, reason: 'length' }]]);
  t.match(cut.slice(-3), [{ type: 'content_block_stop', index: 0 }, { delta: { stop_reason: 'max_tokens' } }, {}]);
});

t.test('CL-20 calls that are written at once all reach the client, however the answer ends', async () => {
  const names = ['a', 'b', 'c'];
  const piece = fc.tuple(fc.constantFrom(...names, 'text'), fc.constantFrom('1', '22', ''));
  const reason = fc.constantFrom('stop', 'length', 'content_filter', 'tool_calls' as const);
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 12 }), reason, fc.boolean(), async (pieces, reason, isComplete) => {
      const written = new Map<string, string>();
      const events = pieces.map(([id, part]): AgentEvent => {
        written.set(id, (written.get(id) ?? '') + part);
        return id === 'text' ? text(part) : { type: 'tool-call-delta', id, name: 'read', arguments: part };
      });
      const calls = names.flatMap((id): AgentEvent[] => {
        const whole = written.get(id);
        return whole === undefined || !isComplete ? [] : [{ type: 'tool-call', id, name: 'read', arguments: `${whole}9` }];
      });
      const sent = await streamed([[started], [step(1), ...events], [...calls, { ...finished, reason }]]);
      const blocks: { id: string; said: string }[] = [];
      let open = false;
      for (const { type, index, ...event } of sent) {
        if (type === 'content_block_start') {
          assert.deepEqual([open, index], [false, blocks.length]);
          const { id = 'text' } = event.content_block as { id?: string };
          blocks.push({ id, said: '' });
          open = true;
        } else if (type === 'content_block_delta' || type === 'content_block_stop') {
          assert.deepEqual([open, index], [true, blocks.length - 1]);
          const { partial_json: json, text: said } = (event.delta ?? {}) as Record<string, string>;
          const block = blocks.at(-1);
          if (block) block.said += json ?? said ?? '';
          open = type === 'content_block_delta';
        }
      }
      assert.equal(open, false, 'each block is closed');
      for (const [id, said] of written) {
        const shown = blocks.filter((block) => block.id === id).map((block) => block.said);
        if (id === 'text') assert.equal(shown.join(''), said);
        else assert.deepEqual(shown, [isComplete ? `${said}9` : said]);
      }
    }),
    { numRuns: 300 },
  );
});

t.test('CL-20 the events of a stream amount to the message of a whole answer', async () => {
  const event = fc.oneof(
    fc.string().map(text),
    fc
      .string({ unit: 'binary' })
      .map((words): AgentEvent => ({ type: 'text', text: words, json: JSON.stringify(words).slice(1, -1) })),
    fc.string().map((words): AgentEvent => ({ type: 'reasoning', text: words })),
    fc.constant(own),
    fc.constant(ownResult),
    fc.constant(clientCall),
    fc.integer({ min: 2, max: 9 }).map(step),
    fc.constant<AgentEvent>({ type: 'tool-progress', id: 'call_1', message: 'half' }),
  );
  const answers = fc.array(fc.array(event, { maxLength: 4 }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(answers, async (batches) => {
      const turn = [[started], [step(1)], ...batches, [{ ...finished, usage }]];
      const fields = { thinking: { type: 'adaptive' } };
      const message = await whole(turn, fields, MCP);
      const sent = folded(await streamed(turn, fields, MCP));
      assert.deepEqual({ ...sent, id: '' }, { ...message, id: '' });
    }),
    { numRuns: 200 },
  );
});

t.test('CL-23 calls of the agent’s own tools are not shown', async (t) => {
  const turn = [[started], [step(1), text('Let me see.'), own], [ownResult], [step(2), text('Found.'), finished]];
  t.match((await whole(turn)).content, [{ type: 'text', text: 'Found.' }]);
  const blocks = folded(await streamed(turn)).content;
  t.strictSame(blocks, [
    { type: 'text', text: 'Let me see.' },
    { type: 'text', text: 'Found.' },
  ]);
  const limited = [
    [started],
    [step(1), text('Let me see.'), own],
    [ownResult],
    [step(2), { ...finished, limit: 'max_steps' as const }],
  ];
  t.match((await whole(limited)).content, [{ type: 'text', text: 'Let me see.' }], 'unless a limit ended the turn');
});

t.test('CL-23 a client that knows MCP blocks gets them, as far as the agent allows', async (t) => {
  const turn = [[started], [step(1), text('Let me see.'), own], [ownResult], [step(2), text('Found.'), finished]];
  const use = { type: 'mcp_tool_use', id: 'call_1', name: 'find', server_name: 'files' };
  const result = { type: 'mcp_tool_result', tool_use_id: 'call_1', is_error: false };
  t.strictSame((await whole(turn, {}, MCP)).content, [
    { type: 'text', text: 'Let me see.' },
    { ...use, input: { q: 1 } },
    { ...result, content: [{ type: 'text', text: 'found' }] },
    { type: 'text', text: 'Found.' },
  ]);
  const names = { target: { toolVisibility: 'names' as const } };
  t.match((await whole(turn, {}, MCP, names)).content, [{}, { ...use, input: {} }, { ...result, content: [] }, {}]);
  const none = { target: { toolVisibility: 'none' as const } };
  t.match((await whole(turn, {}, MCP, none)).content, [{ type: 'text', text: 'Found.' }]);
});

t.test('CL-28 thinking is shown where the request asks for it, with a signature of the server', async (t) => {
  const turn: AgentEvent[][] = [
    [started],
    [step(1), { type: 'reasoning', text: 'Hm' }, { type: 'reasoning', text: '.' }, text('Yes.'), finished],
  ];
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: SIGNATURE };
  const answer = { type: 'text', text: 'Yes.' };
  const contentOf = async (fields: object) => (await whole(turn, fields)).content;
  t.strictSame(await contentOf({ thinking: { type: 'adaptive' } }), [thinking, answer]);
  t.strictSame(await contentOf({ thinking: { type: 'enabled', budget_tokens: 1024 } }), [thinking, answer]);
  t.strictSame(await contentOf({ thinking: { type: 'adaptive', display: 'omitted' } }), [answer]);
  t.strictSame(await contentOf({ thinking: { type: 'disabled' } }), [answer]);
  t.strictSame(await contentOf({}), [answer]);
  const { ignored } = await turnOf({ thinking: { type: 'enabled', budget_tokens: 1024 } });
  t.equal(ignored, 'thinking.budget_tokens');
});

t.test('CL-27 the header alone names a session', async (t) => {
  const metadata = { user_id: 'user_1_session_2' };
  const { turn: stateless } = await turnOf({ metadata });
  t.strictSame([stateless.session, stateless.metadata], [undefined, { user_id: 'user_1_session_2' }]);
  const { turn } = await turnOf({ metadata }, {}, { 'x-session-id': 's1', 'x-session-busy': 'reject' });
  t.match(turn.session, { key: 's1', user: 'user_1_session_2', busy: 'reject' });
  const { turn: blank } = await turnOf({}, {}, { 'x-session-id': ' ' });
  t.equal(blank.session, undefined);
  const { turn: off } = await turnOf({}, { config: { sessionFrom: [] } }, { 'x-session-id': 's1' });
  t.equal(off.session, undefined);
});

t.test('CL-27 a session may hold the calls that results answer', async (t) => {
  const messages = [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_2', content: 'A' }] }];
  const { turn } = await turnOf({ messages }, {}, { 'x-session-id': 's1' });
  t.match(turn.messages, [{ role: 'tool', tool_call_id: 'call_2' }]);
  const twice = { messages: [...messages, ...messages] };
  t.match(await refusalOf(twice, {}, { 'x-session-id': 's1' }), { status: 400, message: /^messages\.1\.content\.0: unexpected/ });
});

t.test('CL-27 a conversation is found by its id, with its own agent only', async (t) => {
  const conversation = async () => ({ id: { project: 'default', agent: 'assistant', key: 'k1' } }) as never;
  const headers = { 'x-session-id': `conv_${'0'.repeat(40)}` };
  t.match((await turnOf({}, { conversation }, headers)).turn.session, { key: 'k1', user: undefined });
  t.match(await refusalOf({}, { conversation, target: { name: 'other' } }, headers), {
    status: 400,
    message: /^X-Session-Id: the conversation belongs to the agent 'assistant'/,
  });
  t.match(await refusalOf({}, {}, headers), { status: 404, type: 'not_found_error' });
});

t.test('invalid headers are refused', async (t) => {
  t.match(await refusalOf({}, {}, { 'x-session-id': 'x'.repeat(513) }), {
    status: 400,
    message: /^X-Session-Id: it has 513 bytes/,
  });
  t.match(await refusalOf({}, {}, { 'x-session-id': 's', 'x-session-busy': 'maybe' }), {
    status: 400,
    message: /^X-Session-Busy: /,
  });
  t.match(await refusalOf({}, {}, { 'idempotency-key': '' }), { status: 400, message: /^Idempotency-Key: / });
});

t.test('a repeated request is answered as before, whole and as a stream', async (t) => {
  const principal = { ...OPEN, tokenId: 'tok_1' };
  const headers = { 'idempotency-key': 'k' };
  const batches = [[started], [step(1), text('One.'), own], [ownResult], [step(2), text('Two.'), { ...finished, usage }]];
  for (const stream of [false, true]) {
    const first = startRoutes({ batches, principal });
    const reply = await first.post({ stream }, headers);
    if (stream) await eventsOf(reply);
    const recorder = first.turns[0]?.idempotency?.recorder;
    if (!recorder) throw new Error('the turn has no recorder');
    for (const batch of batches) recorder.add(batch);
    const claimed = { kind: 'replay', text: recorder.text() } as const;
    const again = await startRoutes({ claimed, principal }).post({ stream }, headers);
    t.match(again.headers, { 'idempotent-replayed': 'true', 'x-model-connection': 'fast' });
    const message = stream ? folded(await eventsOf(again)) : again.body;
    const texts = stream ? ['One.', 'Two.'] : ['Two.'];
    t.match(message, {
      stop_reason: 'end_turn',
      content: texts.map((words) => ({ type: 'text', text: words })),
      usage: { output_tokens: 7 },
    });
  }
});

t.test('a repeated request that cannot be answered is an error', async (t) => {
  const principal = { ...OPEN, tokenId: 'tok_1' };
  const headers = { 'idempotency-key': 'k' };
  const of = (claimed: NonNullable<RouteOptions['claimed']>) => refusalOf({}, { claimed, principal }, headers);
  t.match(await of({ kind: 'running' }), { status: 409, headers: { 'retry-after': '2' }, turns: 0 });
  t.match(await of({ kind: 'mismatch' }), { status: 422, type: 'invalid_request_error' });
  t.match(await of({ kind: 'interrupted' }), { status: 500, type: 'api_error', headers: { 'x-should-retry': 'false' } });
  const failure = { code: 'store_failed', message: 'No store.', toolsRan: false } as const;
  t.match(await of({ kind: 'failed', failure }), { status: 500, type: 'api_error', message: 'No store.' });
  const recorder = startRoutes({ principal });
  await recorder.post({}, headers).catch(() => undefined);
  const recorded = recorder.turns[0]?.idempotency?.recorder;
  recorded?.add([{ type: 'failed', failure: { ...failure, toolsRan: true } }]);
  t.match(await of({ kind: 'replay', text: recorded?.text() ?? '' }), {
    status: 500,
    headers: { 'idempotent-replayed': 'true', 'x-should-retry': 'false' },
  });
});

t.test('the usage of an answer without cached tokens', async (t) => {
  const { usage } = await whole([[started], [step(1), text('x')], [{ ...finished, usage: { ...NO_USAGE, promptTokens: 3 } }]]);
  t.match(usage, { input_tokens: 3, cache_read_input_tokens: 0 });
});
