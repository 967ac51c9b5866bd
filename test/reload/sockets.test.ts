/** WebSockets stay open over a reload (configuration.md, rule 8). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { LiveSocket, textOf } from '../support/live-socket.js';
import { ASSISTANT, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const CHANGED = ASSISTANT.replace('You are the assistant.', 'You are the second.');

async function reload(app: TestServer, yaml: string): Promise<void> {
  await writeFile(join(app.started.folder, 'plugboard.yaml'), yaml);
  const { refused } = await app.started.server.reload();
  if (refused) throw refused;
}

t.test('rule 8: an open WebSocket stays; its running response keeps the prompt, its next one has the new one', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const socket = await LiveSocket.open(t, app);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  socket.create({ model: 'assistant', input: 'go' });
  await socket.until('response.output_text.delta');
  await reload(app, liveConfig('{ maxConnectionsPerAddress: 1 }', CHANGED));
  gate.resolve();
  const last = (await socket.turn()).at(-1);
  t.equal(last?.response && textOf(last.response), 'one two');
  t.match(app.asked.messages[0], { content: 'You are the assistant.' });

  await socket.ask({ model: 'assistant', input: 'again' });
  t.match(app.asked.messages[0], { content: 'You are the second.' });
  t.match(await LiveSocket.refused(t, app), { status: 429 }, 'the changed limit counts the open connection');
  await socket.roundTrip();
});

t.test('rule 8: WebSockets of a removed transport end their response, and close with 1012', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const [busy, idle] = [await LiveSocket.open(t, app), await LiveSocket.open(t, app)];
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  busy.create({ model: 'assistant', input: 'go' });
  await busy.until('response.output_text.delta');
  await reload(app, TRANSPORTS + ASSISTANT);
  gate.resolve();
  const last = (await busy.turn()).at(-1);
  t.equal(last?.response && textOf(last.response), 'one two');
  t.strictSame(await Promise.all([idle.closed, busy.closed]), Array(2).fill({ code: 1012, reason: 'restart' }));
});

t.test('rule 8: responses in progress are found after a reload that changes the order of the transports', async (t) => {
  const swapped = liveConfig().replace(/( {2}responses: \{\}\n)( {2}websocket: \{\}\n)/, '$2$1');
  t.not(swapped, liveConfig());
  const app = await TestServer.start(t, liveConfig());
  const first = await LiveSocket.open(t, app);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  first.create({ model: 'assistant', input: 'go' });
  const [created] = await first.until('response.output_text.delta');
  const id = created?.response?.id ?? '';
  await reload(app, swapped);

  t.match((await app.get(`/v1/responses/${id}`)).body, { id, status: 'in_progress' });
  const second = await LiveSocket.open(t, app);
  second.send({ type: 'svc:response.resume', response_id: id });
  await second.until('response.output_text.delta');
  const named = liveConfig().replace(/\n/, '\nresponses: { use: open-responses }\n');
  await reload(app, named);
  t.match((await app.get(`/v1/responses/${id}`)).body, { id, status: 'in_progress' }, 'the service was named, and stayed');
  gate.resolve();
  for (const socket of [first, second]) {
    const last = (await socket.turn()).at(-1);
    t.equal(last?.response && textOf(last.response), 'one two');
  }
});

t.test('C-256 rule 8: a watch goes on over a reload, and shows the turns of the new agents', async (t) => {
  const app = await TestServer.start(t, liveConfig());
  const { body } = await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', id: 'c' });
  const socket = await LiveSocket.open(t, app);
  socket.send({ type: 'svc:conversation.watch', conversation: (body as { id: string }).id });
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  const first = app.stream(saying('go', { session_id: 'c' }));
  await socket.until('response.output_text.delta');
  await reload(app, liveConfig('{ maxConnectionsPerAddress: 9 }', CHANGED));
  gate.resolve();
  t.match((await socket.turn()).at(-1)?.response?.output, [{ content: [{ text: 'one two' }] }]);
  await first;
  await app.chat(saying('again', { session_id: 'c' }));
  t.match((await socket.turn()).at(-1), { type: 'response.completed' });
  t.match(app.asked.messages[0], { content: 'You are the second.' });
});
