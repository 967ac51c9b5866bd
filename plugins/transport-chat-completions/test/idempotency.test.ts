import type { AgentEvent } from '@plugboard/kernel';
import type { ClaimResult } from '@plugboard/kernel/contracts';
import t from 'tap';
import { chunks, chunksOf, errorOf, finished, frames, HI, says, startRoute, textOf } from './support/route.js';

const KEY = ['Idempotency-Key', 'order-7'];
const step = { type: 'step', step: 1, connection: 'fast' } as const;
const usage = { promptTokens: 12, completionTokens: 8, cachedTokens: 2, cacheWriteTokens: 0, reasoningTokens: 0 };

/** What the transport writes down of a turn. */
async function recorded(batches: readonly (readonly AgentEvent[])[], fields: object = {}) {
  const { ask, turns } = startRoute({ rawHeaders: KEY, batches });
  const reply = await ask({ ...fields }).catch((error: unknown) => error);
  const recorder = turns[0]?.idempotency?.recorder;
  if (!recorder) throw new Error('the turn has no recorder');
  for (const batch of batches) recorder.add(batch);
  return { reply, text: recorder.text() };
}

/**
 * A bench where the same request was answered before, by another id and at another time than now.
 */
const replaying = (text: string) => startRoute({ rawHeaders: KEY, claimed: { kind: 'replay', text } });

t.test('a request without a key claims nothing; one with a key passes its claim to the turn', async (t) => {
  const without = startRoute();
  await without.ask();
  t.same([without.claims, without.turns[0]?.idempotency], [[], undefined]);
  const { ask, claims, turns } = startRoute({
    rawHeaders: KEY,
    principal: { project: 'acme', scopes: ['chat'], tokenId: 'one' },
  });
  t.notOk((await ask()).headers?.['idempotent-replayed']);
  t.match(claims, [{ key: { project: 'acme', route: '/v1/chat/completions', key: 'order-7' } }]);
  t.equal(turns[0]?.idempotency?.claim, claims[0]);
});

t.test('a key has 1 to 255 characters of printable ASCII and is sent once', async (t) => {
  for (const key of ['a', '~', 'x y', '"8e03978e"', 'x'.repeat(255)]) {
    const { ask, claims } = startRoute({ rawHeaders: ['idempotency-KEY', key] });
    await ask();
    t.equal(claims[0]?.key.key, key);
  }
  for (const rawHeaders of [
    ['Idempotency-Key', ''],
    ['Idempotency-Key', 'x'.repeat(256)],
    ['Idempotency-Key', 'é'],
    ['Idempotency-Key', 'a\tb'],
    [...KEY, ...KEY],
  ]) {
    const { ask, claims, turns } = startRoute({ rawHeaders });
    const error = await errorOf(ask());
    t.match(error, { status: 400, body: { error: { param: 'Idempotency-Key', code: 'invalid_value' } } });
    t.match(error.message, /^Invalid 'Idempotency-Key': /);
    t.same([claims, turns], [[], []]);
  }
});

t.test('a request is validated before its key is claimed', async (t) => {
  const { ask, claims } = startRoute({ rawHeaders: [...KEY, 'X-Session-Busy', 'queue'] });
  await errorOf(ask({ user: 'ann' }));
  await errorOf(ask({ temperature: 'hot' }));
  const unknown = startRoute({ rawHeaders: KEY, resolution: { kind: 'unknown' } });
  await errorOf(unknown.ask());
  t.same([claims, unknown.claims], [[], []]);
});

t.test('the fingerprint covers the values of the body, in any notation, and the session', async (t) => {
  const print = async (body: object, headers: readonly string[] = []) => {
    const { post, claims } = startRoute({ rawHeaders: [...KEY, ...headers] });
    await post({ model: 'assistant', messages: HI, ...body });
    return claims[0]?.fingerprint;
  };
  const first = await print({ metadata: { a: '1', b: '2' }, temperature: 1 });
  t.equal(await print({ temperature: 1, metadata: { b: '2', a: '1' } }), first);
  for (const other of [
    print({ metadata: { a: '1', b: '2' } }),
    print({ metadata: { a: '1', b: '3' }, temperature: 1 }),
    print({ metadata: { a: '1', b: '2' }, temperature: 1 }, ['X-Session-Id', 's1']),
    print({ metadata: { a: '1', b: '2' }, temperature: 1, messages: [...HI, ...HI] }),
  ]) {
    t.not(await other, first);
  }
  t.equal(await print({ stop: ['a', 'b'] }), await print({ stop: ['a', 'b'] }));
  t.not(await print({ stop: ['a', 'b'] }), await print({ stop: ['b', 'a'] }), 'lists have an order');
  t.not(await print(JSON.parse('{"__proto__":{"a":1}}')), await print({}));
});

t.test('a whole answer is replayed unchanged', async (t) => {
  const call = { type: 'tool-call', id: 'call_1', name: 'f', arguments: '{"a":1}' } as const;
  for (const batches of [
    [
      [step, { type: 'text', text: 'Let me see.' }],
      [{ ...step, step: 2 }],
      [{ type: 'text', text: 'It is "noon" 🧮.' }, finished],
    ],
    [[step, call], [{ ...finished, reason: 'tool_calls', usage }]],
    [[step, finished]],
  ] as const) {
    const { reply, text } = await recorded(batches);
    const { ask, turns, clock } = replaying(text);
    clock.advance(3_600_000);
    const again = await ask();
    t.match(reply, { status: 200, headers: { 'x-model-connection': 'fast' } });
    t.same({ ...again, headers: undefined }, { ...(reply as object), headers: undefined });
    t.same(again.headers, { 'x-agent': 'assistant', 'x-model-connection': 'fast', 'idempotent-replayed': 'true' });
    t.same(turns, []);
  }
});

t.test('a stream is replayed as a role, text in pieces of at most 4 KiB, an end, and usage on request', async (t) => {
  const long = `${'x'.repeat(4095)}🧮${'é'.repeat(3000)}`;
  const said: AgentEvent[][] = [
    [step, { type: 'text', text: 'Let me see.' }, { type: 'text', text: '' }],
    [{ type: 'tool-call', id: 'call_0', name: 'clock', arguments: '{}', tool: { entry: 'clock', name: 'clock' } }],
    [{ ...step, step: 2 }],
    [{ type: 'text', text: long }],
    [{ ...finished, usage }],
  ];
  for (const stream_options of [undefined, { include_usage: true }]) {
    const fields = { stream: true, stream_options };
    const { reply, text } = await recorded(said, fields);
    const first = chunks(await chunksOf(reply as never));
    const replay = await replaying(text).ask(fields);
    t.match(replay.headers, {
      'content-type': 'text/event-stream; charset=utf-8',
      'x-model-connection': 'fast',
      'idempotent-replayed': 'true',
    });
    const stream = await chunksOf(replay);
    const again = chunks(stream);
    t.equal(frames(stream).at(-1), '[DONE]');
    t.same(again[0], first[0], 'the same role chunk, with the id of the first time');
    t.same(again.at(-1), first.at(-1));
    t.same(
      again.filter(({ choices }) => choices[0]?.finish_reason),
      first.filter(({ choices }) => choices[0]?.finish_reason),
    );
    t.equal(textOf(stream), `Let me see.\n\n${long}`);
    t.equal(textOf(stream), first.map(({ choices }) => choices[0]?.delta.content ?? '').join(''));
    for (const { choices } of again) t.ok(Buffer.byteLength(choices[0]?.delta.content ?? '') <= 4096);
    t.ok(again.every(({ choices }) => choices[0]?.delta.content?.isWellFormed() ?? true));
  }
});

t.test('a stream without text and one with client tool calls are replayed', async (t) => {
  const call: AgentEvent = { type: 'tool-call', id: 'call_1', name: 'f', arguments: '{"a":1}' };
  for (const batches of [
    [[step], [finished]],
    [[step, call], [{ ...finished, reason: 'tool_calls' as const }]],
  ]) {
    const { reply, text } = await recorded(batches, { stream: true });
    const replay = await replaying(text).ask({ stream: true });
    t.same(frames(await chunksOf(replay)), frames(await chunksOf(reply as never)));
  }
});

t.test('a failure is replayed with its status, even for a stream', async (t) => {
  const failure = { code: 'model_failed', message: 'The model failed.', toolsRan: true } as const;
  for (const stream of [false, true]) {
    const { reply, text } = await recorded([[step], [{ type: 'failed', failure }]], { stream });
    const again = await errorOf(replaying(text).ask({ stream }));
    t.match(reply, { status: 502, body: again.body });
    t.equal(again.status, 502);
    t.same(again.headers, { 'x-should-retry': 'false', 'idempotent-replayed': 'true' });
  }
});

t.test('a key without an answer gets an error that says why', async (t) => {
  const errorFor = async (claimed: ClaimResult) => {
    const { ask, turns } = startRoute({ rawHeaders: KEY, claimed });
    const { status, body, headers } = await errorOf(ask());
    t.same(turns, []);
    return { status, error: body.error, headers };
  };
  t.match(await errorFor({ kind: 'running' }), {
    status: 409,
    error: { type: 'invalid_request_error', code: 'idempotency_in_progress', param: null },
    headers: { 'retry-after': '2' },
  });
  t.match(await errorFor({ kind: 'mismatch' }), {
    status: 422,
    error: { type: 'invalid_request_error', code: 'idempotency_mismatch', param: 'Idempotency-Key' },
  });
  const { error, ...rest } = await errorFor({ kind: 'interrupted' });
  t.same(rest, { status: 502, headers: { 'idempotent-replayed': 'true', 'x-should-retry': 'false' } });
  t.equal(error.type, 'svc_error');
  const failure = { code: 'store_failed', message: 'The session store failed.', toolsRan: false } as const;
  t.same(await errorFor({ kind: 'failed', failure }), {
    status: 502,
    error: { type: 'svc_error', message: 'The session store failed.' },
    headers: {},
  });
});

t.test('a malformed stored answer is reported as such', async (t) => {
  for (const text of ['null', '{}', '{"head":{}}', '"text"', '7']) {
    await t.rejects(replaying(text).ask(), { message: /the answer stored for an idempotency key is malformed/ }, text);
  }
  const recorder = await (async () => {
    const { ask, turns } = startRoute({ rawHeaders: KEY, batches: says('Hello') });
    await ask();
    return turns[0]?.idempotency?.recorder;
  })();
  t.throws(() => recorder?.text(), /before the turn ended/);
});
