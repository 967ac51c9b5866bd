import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import { isChunk } from '../../../plugins/transport-chat-completions/test/support/reference-schema.js';
import { RawClient } from '../../../plugins/transport-http/test/support/raw-client.js';
import { rawChat } from '../../support/raw-exchange.js';
import { answerOf, saying, TestServer } from '../../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../../support/with-tools.js';

const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);

/** A turn that looks into a file before it answers. */
const treasureHunt = [{ toolCalls: [readTreasure] }, { text: ['Under', ' the', ' oak.'] }];

/** The bytes of a whole stream, as they came over the wire, with the framing of HTTP taken off. */
async function rawStream(body: object): Promise<{ head: string; body: Buffer }> {
  const raw = await RawClient.open(server.port);
  raw.send(...rawChat({ stream: true, ...body }));
  const received = Buffer.from(await raw.until(/\r\n0\r\n\r\n/), 'latin1');
  raw.socket.destroy();
  const end = received.indexOf('\r\n\r\n');
  return { head: received.subarray(0, end).toString(), body: dechunked(received.subarray(end + 4)) };
}

function dechunked(body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = body.indexOf('\r\n', at);
    const length = Number.parseInt(body.subarray(at, line).toString(), 16);
    if (length === 0) return Buffer.concat(pieces);
    pieces.push(body.subarray(line + 2, line + 2 + length));
    at = line + 2 + length + 2;
  }
}

t.test('C-090 C-105 the headers of a stream forbid caching and buffering', async (t) => {
  const { head } = await rawStream(saying('Hi'));
  t.match(head, /^HTTP\/1\.1 200 OK\r\n/);
  t.match(head, /\r\ncontent-type: text\/event-stream; charset=utf-8(\r\n|$)/i);
  t.match(head, /\r\ncache-control: no-cache/i);
  t.match(head, /\r\nx-accel-buffering: no(\r\n|$)/i);
  t.match(head, /\r\nx-model-connection: fast(\r\n|$)/i);
  t.notMatch(head, /content-length|content-encoding/i);
});

t.test('C-091 C-100 the body consists of data lines, each followed by a blank line, and ends with [DONE]', async (t) => {
  server.models.enqueue(...treasureHunt);
  const { body } = await rawStream(saying('Where is it?', { stream_options: { include_usage: true } }));
  const text = body.toString();
  t.match(text, /^(data: \{[^\r\n]+\}\n\n){5,}data: \[DONE\]\n\n$/);
  t.notMatch(text, /^(id|event|retry|data: *$)/m);
});

t.test('C-092 C-093 C-094 C-096 C-103 the chunks of a run with tools are a role, text and one finish reason', async (t) => {
  server.models.enqueue(...treasureHunt);
  const { chunks, done, text, errors } = await server.stream(saying('Where is it?'));
  const [first] = chunks;
  t.equal(text, 'Under the oak.');
  t.strictSame([done, errors], [true, []]);
  t.strictSame(
    chunks.map(({ choices }) => choices.map(({ delta }) => delta)),
    [[{ role: 'assistant', content: '', refusal: null }], ...['Under', ' the', ' oak.'].map((content) => [{ content }]), [{}]],
    'no call of a tool among them',
  );
  t.strictSame(
    chunks.map(({ choices }) => choices[0]?.finish_reason),
    [null, null, null, null, 'stop'],
  );
  t.match(first, { id: /^chatcmpl-/, object: 'chat.completion.chunk', model: 'assistant', created: Number });
  for (const { id, object, created, model, choices, ...rest } of chunks) {
    t.strictSame([id, object, created, model], [first?.id, first?.object, first?.created, first?.model]);
    t.equal(choices[0]?.index, 0);
    t.notOk('usage' in rest);
  }
});

t.test('C-095 the concatenated deltas equal the plain answer', async (t) => {
  const asked = saying('a b  c\nd 😀 "e" \\ \u2028 f');
  t.equal((await server.stream(asked)).text, answerOf(await server.chat(asked)));
  server.models.enqueue(...treasureHunt, ...treasureHunt);
  t.equal((await server.stream(asked)).text, answerOf(await server.chat(asked)));
});

t.test('C-097 C-098 usage is sent on request, in a separate last chunk', async (t) => {
  server.models.enqueue({ text: 'Hi', usage: { promptTokens: 7, completionTokens: 1 } });
  const { chunks, done } = await server.stream(
    saying('Hi', { stream_options: { include_usage: true, include_obfuscation: true } }),
  );
  const last = chunks.at(-1);
  t.ok(done);
  t.strictSame(last?.choices, []);
  t.match(last?.usage, {
    prompt_tokens: 7,
    completion_tokens: 1,
    total_tokens: 8,
    prompt_tokens_details: {},
    completion_tokens_details: {},
  });
  t.ok(chunks.slice(0, -1).every(({ usage, choices }) => usage === null && choices.length === 1));
  const without = await server.stream(saying('Hi', { stream_options: { include_usage: false, include_obfuscation: false } }));
  t.notOk(without.chunks.some((chunk) => 'usage' in chunk || 'obfuscation' in chunk));
});

t.test('C-099 C-102 every chunk matches the reference’s schema and has no error', async (t) => {
  const handedOut = { model: 'fast', tools: [{ type: 'function', function: { name: 'f' } }] };
  server.models.enqueue(
    ...treasureHunt,
    { toolCalls: [{ name: 'f', arguments: ['{"a"', ':1}'] }] },
    { text: ['x'], finishReason: 'length', reasoning: 'Hm.' },
  );
  for (const fields of [{}, handedOut, {}]) {
    const { chunks } = await server.stream(saying('Hi', { stream_options: { include_usage: true }, ...fields }));
    t.ok(chunks.length > 3);
    for (const chunk of chunks) {
      t.ok(isChunk(chunk), JSON.stringify({ chunk, errors: isChunk.errors }));
      t.notOk('error' in chunk);
    }
  }
});

t.test('C-104 a token reaches the caller before the model writes the next', async (t) => {
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  server.models.enqueue({
    text: ['One', ...gates.map(({ promise }) => promise).flatMap((gate, i) => [gate, [' two', ' three'][i] ?? ''])],
  });
  const raw = await RawClient.open(server.port);
  raw.send(...rawChat(saying('Count', { stream: true })));
  await raw.until(/"content":"One"/);
  t.notMatch(raw.received, 'two');
  gates[0]?.resolve();
  await raw.until(/"content":" two"/);
  t.notMatch(raw.received, 'three');
  gates[1]?.resolve();
  await raw.until(/\[DONE\]/);
  raw.socket.destroy();
});

t.test('C-104 arguments of a client tool call reach the caller before the model has written them', async (t) => {
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ toolCalls: [{ name: 'f', arguments: ['{"a"', ':"x', gate.promise, 'y"}'] }] });
  const raw = await RawClient.open(server.port);
  const f = { type: 'function', function: { name: 'f' } };
  raw.send(...rawChat(saying('Call', { stream: true, model: 'fast', tools: [f] })));
  await raw.until(/"tool_calls":\[\{"index":0,"id":"call_\w+","type":"function","function":\{"name":"f","arguments":""\}\}\]/);
  await raw.until(/"arguments":":\\"x"/);
  t.notMatch(raw.received, '"arguments":"y');
  gate.resolve();
  await raw.until(/"arguments":"y\\"\}".*"finish_reason":"tool_calls".*\[DONE\]/s);
  raw.socket.destroy();
});

t.test('text before a tool call is streamed, with a blank line before the next text', async (t) => {
  server.models.enqueue({ text: ['Let me', ' look.'], toolCalls: [readTreasure] }, { text: 'Under the oak.' });
  t.equal((await server.stream(saying('Where is it?'))).text, 'Let me look.\n\nUnder the oak.');
});

t.test('C-106 a session stores the streamed text', async (t) => {
  const session = { session_id: 'streamed' };
  server.models.enqueue(...treasureHunt);
  const { text } = await server.stream(saying('Where is it?', session));
  await server.stream(saying('Sure?', session));
  t.match(server.asked.messages.slice(1), [
    { role: 'user', content: 'Where is it?' },
    { role: 'assistant', tool_calls: [{ function: { name: 'files__read_text_file' } }] },
    { role: 'tool' },
    { role: 'assistant', content: text },
    { role: 'user', content: 'Sure?' },
  ]);
});

t.test('C-110 a reader that stops reading pauses its own model call only', async (t) => {
  const piece = 'x'.repeat(2 ** 16);
  const pieces = 2 ** 11; // 128 MiB, far more than all sockets in between can hold
  const number = server.models.requests.length + 1;
  server.models.enqueue({
    text: (function* () {
      for (let i = 0; i < pieces; i++) yield piece;
    })(),
  });
  const raw = await RawClient.open(server.port);
  raw.send(...rawChat(saying('Talk', { stream: true })));
  await raw.until(/xxx/);
  raw.socket.pause();
  const held = await server.models.received(number);
  let sent = -1;
  for (let unchanged = 0; unchanged < 20; unchanged = held.sent === sent ? unchanged + 1 : 0) {
    sent = held.sent;
    t.equal((await server.stream(saying('Hi'))).text, 'Hi', 'others are served meanwhile');
  }
  t.equal(held.state, 'open');
  t.ok(held.sent < pieces, `${held.sent} of ${pieces} pieces were read`);
  raw.socket.destroy();
  t.equal(await held.ended, 'aborted');
});

t.test('C-111 no character is split, whatever the chunks of the model server', async (t) => {
  const text = 'Größe 😀𝄞 日本語 \u2028 é';
  const event = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const bytes = Buffer.from(`${event({ content: text })}${event({ content: text })}${event({}, 'stop')}data: [DONE]\n\n`);
  server.models.enqueue({ raw: Array.from(bytes, (byte) => Uint8Array.of(byte)) });
  const { body } = await rawStream(saying('Hi'));
  let said = '';
  for (let at = 0, end = body.indexOf('\n\n'); end >= 0; at = end + 2, end = body.indexOf('\n\n', at)) {
    const frame = new TextDecoder('utf-8', { fatal: true }).decode(body.subarray(at, end)).slice('data: '.length);
    if (frame === '[DONE]') continue;
    const content: string = JSON.parse(frame).choices[0].delta.content ?? '';
    t.ok(content.isWellFormed());
    said += content;
  }
  t.equal(said, text + text);
});

t.test('C-112 an invalid request gets a JSON error, even with stream: true', async (t) => {
  const reply = await server.chat(saying('Hi', { stream: true, temperature: 3 }));
  t.equal(reply.status, 400);
  t.match(reply.headers.get('content-type'), /^application\/json/);
  t.match(reply.body, { error: { param: 'temperature' } });
});

t.test('C-101 a silent stream gets its head after 5 s and a comment every 15 s', async (t) => {
  const clock = new ManualClock();
  const patient = await TestServer.start(t, WITH_TOOLS, { ...toolFixtures, clock });
  const gate = Promise.withResolvers<void>();
  patient.models.enqueue({ toolCalls: [{ name: 'clock', arguments: {} }] }, { before: gate.promise, text: 'At last.' });
  const opening = patient.open(saying('Take your time'));
  await patient.models.received(2);
  clock.advance(4_999);
  let hasHead = false;
  void opening.then(() => {
    hasHead = true;
  });
  await patient.get('/health');
  t.notOk(hasHead);
  clock.advance(1);
  const stream = await opening;
  await stream.until('"role":"assistant"');
  for (let comments = 1; comments <= 3; comments++) {
    clock.advance(15_000);
    await stream.until(': keep-alive\n\n'.repeat(comments));
  }
  gate.resolve();
  const { text, comments, done } = await stream.end();
  t.strictSame([text, comments, done], ['At last.', ['keep-alive', 'keep-alive', 'keep-alive'], true]);
});

t.test('C-130 a stream whose turn waits for an earlier one gets a queued comment', async (t) => {
  const clock = new ManualClock();
  const patient = await TestServer.start(t, WITH_TOOLS, { ...toolFixtures, clock });
  const gate = Promise.withResolvers<void>();
  patient.models.enqueue({ before: gate.promise, text: 'First.' }, { text: 'Second.' });
  const first = patient.stream(saying('one', { session_id: 's' }));
  await patient.models.received(1);
  const timers = clock.pending;
  const opening = patient.open(saying('two', { session_id: 's' }));
  await eventually(() => clock.pending === timers + 2); // for its head, and for its wait
  clock.advance(5_000);
  const stream = await opening;
  await stream.until(': queued\n\n');
  clock.advance(15_000);
  await stream.until(': queued\n\n'.repeat(2));
  gate.resolve();
  t.equal((await first).text, 'First.');
  const { text, comments, done } = await stream.end();
  t.strictSame([text, comments, done], ['Second.', ['queued', 'queued'], true]);
});
