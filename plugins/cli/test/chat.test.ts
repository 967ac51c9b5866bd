import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { LIVE_TRANSPORTS } from '../../../test/support/live.js';
import { TestServer, TRANSPORTS } from '../../../test/support/test-server.js';
import { AGENTS, Chat } from './chat-program.js';

const never = new Promise<never>(() => {});

const clockCall = { toolCalls: [{ name: 'clock', arguments: { timeZone: 'Europe/Rome' } }] };
const texts = (server: TestServer) => server.asked.messages.map(({ content }) => content);

t.test('chat --url shows tools as they run and keeps the conversation', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  server.models.enqueue(clockCall, { text: ['It is', ' noon.'] }, { text: 'You are welcome.' });
  const chat = Chat.piped(t, ['--url', server.url, 'assistant']);
  chat.type('What time is it in Rome?\n');
  await chat.shows('It is noon.\n');
  chat.type('Thank you\n');
  chat.end();
  t.equal(await chat.code(), 0);
  t.match(chat.output, /^→ clock \{"timeZone":"Europe\/Rome"\}\n← clock: .*Europe\/Rome.*\nIt is noon\.\nYou are welcome\.\n$/);
  t.equal(chat.errors, '');
  t.match(texts(server).slice(-2), ['It is noon.', 'Thank you']);
});

t.test('chat --url: Ctrl-C stops the turn and not the program', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  server.models.enqueue({ text: ['Once upon a time', never] });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('Talking to assistant');
  chat.type('Tell me a story\r');
  await chat.shows('Once upon a time');
  chat.type('\x03');
  await chat.shows('(stopped)');
  t.equal(await (await server.models.received(1)).ended, 'aborted');
  chat.type('Something else\r');
  await chat.shows('Something else\r\n');
  await server.models.received(2);
  t.same(texts(server), ['You are the assistant.', 'Something else'], 'the stopped turn left no trace');
  chat.type('\x04');
  t.equal(await chat.code(), 0);
});

t.test('chat --url: Ctrl-D during an answer ends the program after the answer, with exit code 0', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  const { promise: rest, resolve: send } = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Once upon', rest, ' a time.'] });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('Talking to assistant');
  chat.type('Tell me a story\r\x04');
  await chat.shows('Once upon');
  send();
  t.equal(await chat.code(), 0);
  t.match(chat.output, /Once upon a time\.\s+\(.* tokens in/);
  t.notMatch(chat.output, 'ERR_');
});

t.test('chat --url: a stopped turn ends on the server even if the agent outlives its callers', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS.replace('tools: [clock]', 'onDisconnect: continue'));
  server.models.enqueue({ text: ['Once', never] });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('Talking to');
  chat.type('Tell me a story\r');
  await chat.shows('Once');
  chat.type('\x03');
  await chat.shows('(stopped)');
  t.equal(await (await server.models.received(1)).ended, 'aborted');
  chat.type('\x03');
  await chat.shows('(Ctrl-C again ends the chat)');
  chat.type('\x03');
  t.equal(await chat.code(), 0, 'between answers a second Ctrl-C ends the program');
});

t.test('chat --url falls back to chat completions on a server without the live surface, and says so', async (t) => {
  const server = await TestServer.start(t, TRANSPORTS + AGENTS);
  server.models.enqueue(clockCall, { text: 'It is noon.' }, { text: 'Welcome.' });
  const chat = Chat.piped(t, ['--url', `${server.url}/v1/`]);
  chat.type('What time is it?\nThank you\n');
  chat.end();
  t.equal(await chat.code(), 0);
  t.equal(chat.output, 'It is noon.\nWelcome.\n');
  t.equal(chat.errors.split('\n').length, 2, 'it is said once');
  t.match(chat.errors, /does not serve \/v1\/responses, so tool calls are not shown.*@plugboard\/transport-responses/);
  t.match(texts(server).at(-2), 'It is noon.');
});

t.test('chat --url: a failed turn is reported, the next one runs, and the exit code is 1', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  server.models.enqueue({ status: 400 }, { text: 'Fine.', finishReason: 'length' });
  const chat = Chat.piped(t, ['--url', server.url]);
  chat.type('One\nTwo\n');
  chat.end();
  t.equal(await chat.code(), 1);
  t.match(chat.errors, /^plugboard chat: .*model connection failed/);
  t.equal(chat.output, 'Fine.\n(the answer was cut: max_output_tokens)\n');
});

t.test('chat --url: servers that refuse, disconnect or cannot be reached are named, with a remedy', async (t) => {
  const auth = 'auth: { bearer: { tokens: [ { name: a, project: default, token: token-of-the-chat } ] } }\n';
  const closed = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS + auth);
  const refused = Chat.piped(t, ['--url', closed.url]);
  t.equal(await refused.code(), 1);
  t.match(refused.errors, /the server answered 401: .*Set PLUGBOARD_TOKEN/);
  const allowed = Chat.piped(t, ['--url', closed.url], { PLUGBOARD_TOKEN: 'token-of-the-chat' });
  allowed.type('Hello\n');
  allowed.end();
  t.equal(await allowed.code(), 0);
  t.equal(allowed.output, 'Hello\n');

  const broken = createServer((request, response) => {
    if (request.url === '/v1/models') {
      response.end('{"data":[{"id":"assistant"}]}');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: {"type":"response.output_text.delta","delta":"Half"}\n\n');
    request.resume().once('end', () => setTimeout(() => response.destroy(), 50));
  });
  broken.listen(0, '127.0.0.1');
  await once(broken, 'listening');
  t.teardown(() => broken.close());
  const half = Chat.piped(t, ['--url', `127.0.0.1:${(broken.address() as AddressInfo).port}`, 'assistant']);
  half.type('Hello\n');
  half.end();
  t.equal(await half.code(), 1);
  t.match([half.output, half.errors], [/^Half\n$/, /^plugboard chat: .*closed the connection in the middle of its answer/]);

  for (const [url, message] of [
    ['http://127.0.0.1:1', /cannot reach http:\/\/127\.0\.0\.1:1\/v1\/models/],
    [`${closed.url}/nowhere`, /^plugboard chat: the server answered 404/],
    ['http://', /"http:\/\/" is not a valid URL; an example is/],
  ] as const) {
    const chat = Chat.piped(t, ['--url', url]);
    t.equal(await chat.code(), 1);
    t.match(chat.errors, message);
  }
});

t.test('chat refuses an unknown agent, in process and on a server', async (t) => {
  const file = `${t.testdir({ 'plugboard.yaml': `transports: {}\n${AGENTS}` })}/plugboard.yaml`;
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  for (const args of [
    ['--url', server.url],
    ['-c', file],
  ]) {
    const chat = Chat.piped(t, [...args, 'asistant'], { MODEL_URL: server.models.url, MODEL_KEY: 'key' });
    t.equal(await chat.code(), 1);
    t.equal(chat.errors, 'plugboard chat: unknown agent "asistant" (did you mean assistant?); known: assistant; models: fast\n');
  }
  t.equal(server.models.requests.length, 0);
});

t.test('chat --session continues a session, and the commands work in a pipe', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  server.models.enqueue({ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' });
  const first = Chat.piped(t, ['--url', server.url, '--session', 'trip']);
  first.type('Hello\n');
  first.end();
  t.equal(await first.code(), 0);
  const second = Chat.piped(t, ['--url', server.url, '--session', 'trip']);
  second.type('Again\n/sessions\n/new\nNew\n/exit\nNever\n');
  t.equal(await second.code(), 0, '/exit ends the chat');
  t.match(second.output, /^Two\.\n {2}trip {2}\S+ \S+ {2}Hello \(this one\)\nTalking to assistant, session chat-\w+\nThree\.\n$/);
  t.strictSame(texts(server), ['You are the assistant.', 'New'], '/new begins another conversation');
  t.match(server.models.requests[1]?.body, { messages: [{}, { content: 'Hello' }, { content: 'One.' }, { content: 'Again' }] });
});
