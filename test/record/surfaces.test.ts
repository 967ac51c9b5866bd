/** What is recorded of turns, and that a replay with the same configuration changes nothing. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import { created } from '../support/respond.js';
import { answerOf, saying } from '../support/test-server.js';
import { CONFIG, RecordedServer } from './support.js';

const call = (name: string, args: object = {}) => ({ name: `desk__${name}`, arguments: args as Record<string, unknown> });

/** Waits for so many recordings, and replays all of them. */
async function nothingChanged(t: Test, server: RecordedServer, count: number): Promise<void> {
  await server.files(count);
  const { code, turns, changes, failed } = await server.rehearse();
  t.strictSame(changes, []);
  t.strictSame({ code, turns, failed }, { code: 0, turns: count, failed: 0 });
}

t.test('a turn with tools is one file, for its owner alone, without a trace of the key', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.enqueue({ toolCalls: [call('look', { ticket: 7 }), call('look', { ticket: 8 })] }, { text: 'Both are open.' });
  await app.chat(saying('Look at 7 and 8', { max_tokens: 50 }));
  const [name = ''] = await server.files(1);
  const path = join(server.folder, name);
  t.match(name, /^\d{8}T\d{9}Z-turn_[0-9A-Za-z]{20}\.jsonl$/);
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.equal((await stat(server.folder)).mode & 0o777, 0o700);
  const [recording] = await server.recordings(1);
  t.match(recording, {
    turn: {
      agent: 'assistant',
      prompt: 'You are the careful assistant.',
      messages: [{ role: 'user', content: 'Look at 7 and 8' }],
      params: { temperature: 0.2, max_tokens: 50 },
      request: { params: { max_tokens: 50 } },
      connections: ['fast', 'other'],
      inSession: false,
      transport: 'chat-completions',
    },
    attempts: [
      { step: 1, attempt: 1, connection: 'fast', model: 'big-1', messages: [{ role: 'system' }, { role: 'user' }] },
      { step: 2, messages: [{ role: 'system' }, { role: 'user' }, { role: 'assistant' }, { role: 'tool' }, { role: 'tool' }] },
    ],
    tools: [
      { name: 'desk__look', arguments: '{"ticket":7}', state: 'ran', output: 'ticket 7, look 1' },
      { name: 'desk__look', arguments: '{"ticket":8}', state: 'ran', output: 'ticket 8, look 2' },
    ],
    end: { status: 'stop', answer: 'Both are open.', usage: { promptTokens: Number } },
  });
  t.notMatch(await readFile(path, 'utf8'), /authorization|sk-model-key|apiKey/i);
  await nothingChanged(t, server, 1);
});

t.test('a turn of each surface, plain and streamed, is recorded', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool'
      ? { reasoning: 'So it is.', text: ['It is', ' open.'] }
      : { text: 'I look.', toolCalls: [call('look', { ticket: body.messages.length })] },
  );
  await app.chat(saying('chat'));
  await app.stream(saying('stream'));
  await app.chat(saying('session', { session_id: 'one' }));
  await app.chat(saying('session again', { session_id: 'one' }));
  await app.stream(saying('raw model', { model: 'fast' }));
  const first = await created(app, { input: 'responses' });
  await created(app, { input: 'continued', previous_response_id: first.id, instructions: 'Be brief.' });
  await created(app, { input: 'in a conversation', conversation: undefined, store: false });
  const anthropic = { model: 'assistant', max_tokens: 100, messages: [{ role: 'user', content: 'messages' }] };
  await app.request('POST', '/v1/messages', { 'anthropic-version': '2023-06-01' }, { ...anthropic, system: 'You are blunt.' });
  const socket = await LiveSocket.open(t, app);
  socket.create({ model: 'assistant', input: 'live' });
  await socket.turn();
  const photo = [
    { type: 'text', text: 'What is this?' },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' } },
  ];
  await app.chat({
    model: 'assistant',
    messages: [
      { role: 'system', content: 'Describe.' },
      { role: 'user', content: photo },
    ],
  });
  await nothingChanged(t, server, 11);
  const agents = (await server.recordings(11)).map(({ turn }) => `${turn.transport} ${turn.inSession}`);
  const surfaces = [
    'chat-completions true',
    'chat-completions false',
    'responses false',
    'responses true',
    'messages false',
    'websocket true',
  ];
  t.strictSame(new Set(agents), new Set(surfaces));
});

t.test('retries, fallbacks, refusals and broken answers are the same again, without a pause', async (t) => {
  const server = await RecordedServer.start(t);
  const { models } = server.app;
  models.enqueue({ status: 503, retryAfter: 0 }, { text: 'After a retry.' });
  await server.app.chat(saying('retried'));
  models.enqueue({ status: 401 }, { text: 'From the other one.' });
  await server.app.chat(saying('fallback'));
  models.enqueue(
    { status: 400, body: { error: { message: 'The prompt is too long.', code: 'context_length_exceeded' } } },
    { status: 400 },
  );
  await server.app.chat(saying('refused'));
  models.enqueue({ text: ['It breaks', ' off'], cut: { afterEvents: 2 } });
  await server.app.stream(saying('cut'));
  models.enqueue({ toolCalls: [call('photo'), call('fail'), call('look', { ticket: 1 })] }, { text: 'Seen.' });
  await server.app.chat(saying('a tool fails'));
  models.enqueue(
    {
      toolCalls: [
        { name: 'desk__fly', arguments: {} },
        { name: 'desk__look', arguments: '{"ticket":"x"}' },
        { name: 'desk__look', arguments: '{' },
      ],
    },
    { text: 'No.' },
  );
  await server.app.chat(saying('wrong calls'));
  models.enqueue({ text: 'cut here', finishReason: 'length' });
  await server.app.chat(saying('length'));
  models.enqueue({ refusal: 'I will not.' });
  await server.app.chat(saying('refusal'));
  // Three failures in a row: the connection is skipped for a while, also in what is recorded.
  models.respond(({ body }) => (body.model === 'big-1' ? { status: 401 } : { text: 'Small.' }));
  for (const text of ['one', 'two', 'three', 'four', 'five']) await server.app.chat(saying(text));
  await nothingChanged(t, server, 13);
  const skipped = (await server.recordings(13)).filter(({ attempts }) => attempts[0]?.connection === 'other');
  t.ok(skipped.length > 0, 'some turns skipped the connection');
});

t.test('the limits of an agent end the same turns', async (t) => {
  const config = CONFIG.replace('params: { temperature: 0.2 }', 'maxSteps: 3\n    maxToolCalls: 4');
  const server = await RecordedServer.start(t, config);
  server.app.models.respond(({ body }) => ({ toolCalls: [call('look', { ticket: body.messages.length })] }));
  await server.app.chat(saying('steps'));
  server.app.models.respond(({ body }) => ({
    toolCalls: [1, 2, 3].map((one) => call('look', { ticket: one + body.messages.length })),
  }));
  await server.app.chat(saying('calls'));
  const [steps, calls] = await server.recordings(2);
  t.match(steps?.end, { status: 'length', limit: 'max_steps' });
  t.match(calls?.end, { status: 'length', limit: 'max_tool_calls' });
  await nothingChanged(t, server, 2);
});

t.test('client tools end a turn, and their results begin the next', async (t) => {
  const server = await RecordedServer.start(t);
  const tools = [{ type: 'function', name: 'ask_user', parameters: { type: 'object' } }];
  server.app.models.enqueue(
    { toolCalls: [{ name: 'ask_user', arguments: {} }, call('look', { ticket: 3 })] },
    { text: 'Thanks.' },
  );
  const first = await created(server.app, { input: 'Ask me', tools, tool_choice: 'required' });
  const asked = first.output.find(({ type }) => type === 'function_call') as { call_id?: string } | undefined;
  await created(server.app, {
    previous_response_id: first.id,
    tools,
    input: [{ type: 'function_call_output', call_id: asked?.call_id, output: 'yes' }],
  });
  const [one] = await server.recordings(2);
  t.match(one?.tools, [
    { name: 'ask_user', state: 'client' },
    { name: 'desk__look', state: 'ran' },
  ]);
  await nothingChanged(t, server, 2);
});

t.test('a call that waits for approval, and each way to go on', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.respond(({ body }) => {
    const results = body.messages.filter(({ role }) => role === 'tool').length;
    return results % 2 === 0 && body.messages.at(-1)?.role !== 'tool'
      ? { text: 'I close it.', toolCalls: [call('close', { ticket: 1 }), call('look', { ticket: 2 })] }
      : { text: `Done after ${results}.` };
  });
  const say = async (session: string, text: string) =>
    answerOf(
      await app.chat({ model: 'ops', session_id: session, temperature: 0.5, messages: [{ role: 'user', content: text }] }),
    );
  const codeOf = (text: string) => /approve ([A-Z2-9]{6})/.exec(text)?.[1];
  const decide = async (session: string, word: string) => {
    const code = codeOf(await say(session, 'Close 1'));
    t.ok(code, session);
    return say(session, `${word} ${code}`);
  };
  t.match(await decide('approved', 'approve'), /Done/);
  t.match(await decide('denied', 'deny'), /Done/);
  t.match(await decide('unclear', 'perhaps'), /was denied: the conversation went on/);
  const waiting = codeOf(await say('stateless', 'Close 1'));
  t.ok(waiting);
  await nothingChanged(t, server, 7);
  const lead = (await server.recordings(7)).filter(({ turn }) => turn.lead);
  t.match(lead, [{ turn: { lead: [{ role: 'tool', content: /closed 1 in call/ }] } }]);
});

t.test('turns that their callers leave, cancel or that run out of time end where they ended', async (t) => {
  const config = CONFIG.replace('params: { temperature: 0.2 }', 'timeout: 1s');
  const server = await RecordedServer.start(t, config);
  const { app } = server;
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['It begins', gate.promise, ' and ends'] });
  const left = await app.open(saying('left in the text'));
  await app.models.received(1);
  await left.until('It begins');
  left.leave();
  await server.files(1);
  app.models.enqueue({ toolCalls: [call('look', { ticket: 1 }), call('hang')] });
  await app.chat(saying('a tool that hangs'));
  app.models.enqueue({ before: gate.promise });
  await app.chat(saying('a model that hangs'));
  gate.resolve();
  const ends = (await server.recordings(3)).map(({ end }) => end.status);
  t.strictSame(ends, ['abandoned', 'timed_out', 'timed_out']);
  await nothingChanged(t, server, 3);
});

t.test('a summary of earlier turns is recorded, and not asked for again', async (t) => {
  const config = CONFIG.replace('params: { temperature: 0.2 }', 'history: { policy: summarize, maxMessages: 4 }');
  const server = await RecordedServer.start(t, config);
  const { app } = server;
  for (const text of ['one', 'two', 'three', 'four']) await app.chat(saying(text, { session_id: 'long' }));
  await created(app, { input: [{ role: 'user', content: 'Hello' }, { type: 'compaction_trigger' }] });
  const summaries = (await server.recordings(5)).filter(({ attempts }) => attempts.some(({ step }) => step === 0));
  t.ok(summaries.length > 0);
  t.match((await server.recordings(5)).at(-1)?.turn.request, { summarize: true });
  await nothingChanged(t, server, 5);
});

t.test('turns of other agents are not recorded', async (t) => {
  const server = await RecordedServer.start(t, CONFIG.replace('record: {}', 'record: { agents: [ops] }'));
  await server.app.chat(saying('not this one'));
  await server.app.chat(saying('this one', { model: 'ops' }));
  t.match(await server.recordings(1), [{ turn: { agent: 'ops' } }]);
});

t.test('no turn fails or waits because its recording cannot be written', async (t) => {
  const server = await RecordedServer.start(t, CONFIG.replace('record: {}', 'record: { path: ./desk.mjs/recordings }'));
  for (const text of ['one', 'two', 'three']) t.equal((await server.app.chat(saying(text))).status, 200);
  const warned = await eventually(() => {
    const found = server.app.started.logs.filter(({ msg }) => /recordings cannot be written/.test(String(msg)));
    return found.length > 0 && found;
  });
  t.match(warned, [{ level: 'warn', msg: 'recordings cannot be written; check plugins.record.path', err: { code: /^E/ } }]);
  const { entries } = (await server.app.get('/v1/status')).body as { readonly entries: readonly object[] };
  t.match(
    entries.find((one) => 'entry' in one && one.entry === 'plugins.record'),
    { health: 'degraded', reason: /check plugins\.record\.path/ },
  );
});
