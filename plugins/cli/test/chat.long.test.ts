import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { LIVE_TRANSPORTS } from '../../../test/support/live.js';
import { TestServer } from '../../../test/support/test-server.js';
import { AGENTS, Chat } from './chat-program.js';
import { Plugboard } from './plugboard.js';

const clockCall = { toolCalls: [{ name: 'clock', arguments: { timeZone: 'Europe/Rome' } }] };
const APPROVE = AGENTS.replace('tools: [clock]', 'tools: [clock], approve: [clock]');
const lastOf = (server: TestServer) => server.asked.messages.at(-1)?.content;

t.test('a pasted text is one message', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('\x1b[?2004h');
  await chat.shows('you ›');
  chat.type('\x1b[200~first\rsecond\rthird\x1b[201~');
  await chat.shows('[pasted text 1, 3 lines]');
  t.equal(server.models.requests.length, 0, 'it is not sent before Enter');
  chat.type(' and more\r');
  await server.models.received(1);
  await chat.shows(' tokens in, ');
  t.equal(lastOf(server), 'first\nsecond\nthird and more');
  chat.type('/exit\r');
  t.equal(await chat.code(), 0);
  t.equal(server.models.requests.length, 1);
  t.ok(chat.output.includes('\x1b[?2004l'), 'the terminal is left as it was');
});

t.test('a terminal shows a spinner, breaks lines between words, and shows usage and errors apart', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  const { promise: rest, resolve: send } = Promise.withResolvers<void>();
  const words = 'The answer is long enough that it does not fit into a line of sixty columns. \x1b]0;title\x07';
  server.models.enqueue({ text: [rest, words] }, { text: ['Half', ' of it'], cut: { afterEvents: 2 } }, { text: '' });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('you ›');
  chat.type('Go\r');
  await chat.shows('⠙ thinking');
  send();
  await chat.shows(' tokens in, ');
  t.match(chat.output, /into a line [^\n]*\r\nof sixty columns\./, 'the line breaks before a word');
  t.notMatch(chat.output, '\x1b]0;', 'the model sets no title');
  chat.type('Go on\r');
  await chat.shows('Half');
  await chat.shows('\n✗ ');
  t.match(chat.output, /Half[^\n]*\n✗ .*(closed|broke|connection)/, 'an error has a line of its own');
  chat.type('Nothing\r');
  await chat.shows('(the answer is empty)');
  chat.type('/nwe\r');
  await chat.shows('\n✗ unknown command /nwe, did you mean /new?');
  chat.type('/agent nobody\r');
  await chat.shows('\n✗ unknown agent "nobody"; known: assistant; models: fast');
  chat.type('/agent\r');
  await chat.shows('fast       a model, without an agent');
  chat.type('/agent fast\r');
  await chat.shows('Talking to fast, session chat-');
  chat.type('\x04');
  t.equal(await chat.code(), 0, 'a person has seen what failed');
});

t.test('what is typed during an answer is neither shown in it nor lost', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  const { promise: rest, resolve: send } = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Half', rest, ' and half.'] }, { text: 'Two.' }, { text: 'Three.' });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('you ›');
  chat.type('One\r');
  await chat.shows('Half');
  chat.type('Second\rThi');
  send();
  await chat.shows('Two.');
  await chat.shows('you › Thi');
  chat.type('rd\r');
  await chat.shows(' tokens in, ', 3);
  const shown = stripVTControlCharacters(chat.output).replaceAll('\r', '');
  t.match(shown, /you › One\nHalf and half\.\n\(.*\)\n\nyou › Second\nTwo\.\n\(.*\)\n\nyou › Third\nThree\.\n/);
  t.equal(lastOf(server), 'Third');
  chat.type('/exit\r');
  t.equal(await chat.code(), 0);
});

t.test('a second Ctrl-C quits while an answer is being stopped', async (t) => {
  let cancelled = false;
  const stuck = createServer((request, response) => {
    if (request.url === '/v1/models') response.end('{"data":[{"id":"assistant"}]}');
    else if (request.url === '/v1/responses') {
      response.write('data: {"type":"response.created","response":{"id":"resp_1"}}\n\n');
      response.write('data: {"type":"response.output_text.delta","delta":"Once"}\n\n');
    } else cancelled = true; // and is never answered
  });
  await once(stuck.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    stuck.close();
    stuck.closeAllConnections();
  });
  const chat = Chat.onTerminal(t, ['--url', `127.0.0.1:${(stuck.address() as AddressInfo).port}`]);
  await chat.shows('you ›');
  chat.type('Tell me a story\r');
  await chat.shows('Once');
  chat.type('\x03');
  await eventually(() => cancelled);
  const asked = performance.now();
  chat.type('\x03');
  t.equal(await chat.code(), 0);
  t.ok(performance.now() - asked < 4_000, 'it does not wait for the server');
});

t.test('Ctrl-C clears what is typed; at an empty prompt a second one ends the chat', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
  server.models.enqueue({ text: 'One.' }, { text: 'Two.' });
  const chat = Chat.onTerminal(t, ['--url', server.url]);
  await chat.shows('you ›');
  chat.type('never sent\x03');
  chat.type('First\r');
  await chat.shows('One.');
  await chat.shows('you › ', 3);
  chat.type('\x03');
  await chat.shows('(Ctrl-C again ends the chat)');
  chat.type('Second\r');
  await chat.shows('Two.');
  t.match(server.asked.messages.map(({ content }) => content).join(' '), 'First One. Second', 'the conversation is still there');
  await chat.shows(' tokens in, ', 2);
  chat.type('\x03');
  await chat.shows('(Ctrl-C again ends the chat)', 2);
  chat.type('\x03');
  t.equal(await chat.code(), 0);
  const [, key = ''] = /To go on: plugboard chat assistant --session (chat-\w+)/.exec(chat.output) ?? [];
  server.models.enqueue({ text: 'Three.' });
  const next = Chat.onTerminal(t, ['assistant', '--url', server.url, '--session', key]);
  await next.shows('Two.');
  next.type('\x03');
  await next.shows('(Ctrl-C again ends the chat)');
  next.type('\x03');
  t.equal(await next.code(), 0);
});

t.test('a chat that keeps nothing does not say how to go on', async (t) => {
  const chat = Chat.onTerminal(t, []);
  await chat.shows('you ›');
  chat.type('\x03');
  await chat.shows('(Ctrl-C again ends the chat)');
  chat.type('\x03');
  t.equal(await chat.code(), 0);
  t.notMatch(chat.output, 'To go on');
});

t.test('a chat in a session of the memory store does not say how to go on: nothing is kept', async (t) => {
  const config = 'models: { fast: { use: demo } }\nagents: { assistant: { model: fast } }\n';
  const folder = t.testdir({
    'memory.yaml': `sessions: { use: memory }\n${config}`,
    'sqlite.yaml': `sessions: { use: sqlite }\n${config}`,
  });
  for (const [file, says] of [
    ['memory.yaml', false],
    ['sqlite.yaml', true],
  ] as const) {
    const chat = Chat.onTerminal(t, ['-c', join(folder, file), '--session', 'trip']);
    await chat.shows('you ›');
    chat.type('Hi\r');
    await chat.shows('you ›', 2);
    chat.type('/exit\r');
    t.equal(await chat.code(), 0);
    t.equal(chat.output.includes('To go on: plugboard chat assistant --session trip'), says, file);
  }
});

for (const where of ['on a server', 'in process'] as const) {
  t.test(`approvals are asked for and decided ${where}`, async (t) => {
    const server = await TestServer.start(t, LIVE_TRANSPORTS + APPROVE);
    server.models.enqueue(clockCall, { text: 'It is noon.' }, clockCall, { text: 'As you wish.' });
    const file = t.testdir({ 'plugboard.yaml': `transports: {}\n${APPROVE}` });
    const args = where === 'on a server' ? ['--url', server.url] : ['-c', `${file}/plugboard.yaml`];
    const chat = Chat.onTerminal(t, args, { MODEL_URL: server.models.url, MODEL_KEY: 'key' });
    await chat.shows('you ›');
    chat.type('What time is it?\r');
    await chat.shows('? clock {"timeZone":"Europe/Rome"} needs approval');
    await chat.shows('run it? (y, n, n because …) › ');
    t.notMatch(chat.output, '← clock', 'it does not run before');
    t.notMatch(chat.output, 'the answer is empty');
    chat.type('perhaps\r');
    await chat.shows('✗ answer y to run it');
    chat.type('y\r');
    await chat.shows('← clock: ');
    await chat.shows('It is noon.');
    chat.type('Again\r');
    await chat.shows('run it? (y, n, n because …) › ', 3);
    chat.type('n because it is late\r');
    await chat.shows('As you wish.');
    t.match(lastOf(server), 'it is late');
    t.notMatch(chat.output, 'audit', 'the log is not the chat');
    chat.type('/exit\r');
    t.equal(await chat.code(), 0);
  });
}

t.test('approvals in a pipe are decided by the next line', async (t) => {
  const server = await TestServer.start(t, LIVE_TRANSPORTS + APPROVE);
  server.models.enqueue(clockCall, { text: 'It is noon.' });
  const chat = Chat.piped(t, ['--url', server.url]);
  chat.type('What time is it?\napprove\n');
  chat.end();
  t.equal(await chat.code(), 0);
  t.match(chat.output, /^\? clock \{"timeZone":"Europe\/Rome"\} needs approval\n→ clock .*\n← clock: .*\nIt is noon\.\n$/);
});

for (const where of ['on a server', 'in process'] as const) {
  t.test(`a session that is continued shows its last messages ${where}`, async (t) => {
    const server = await TestServer.start(t, LIVE_TRANSPORTS + AGENTS);
    server.models.enqueue({ text: 'One.' }, clockCall, { text: 'Two.' }, { text: 'Three.' });
    const config = `transports: {}\nsessions: { use: sqlite, path: sessions.db }\n${AGENTS}`;
    const file = join(t.testdir({ 'plugboard.yaml': config }), 'plugboard.yaml');
    const args = where === 'on a server' ? ['--url', server.url] : ['-c', file];
    const env = { MODEL_URL: server.models.url, MODEL_KEY: 'key' };
    const first = Chat.piped(t, [...args, '--session', 'trip'], env);
    first.type('First\nSecond\nThird\n');
    first.end();
    t.equal(await first.code(), 0);
    const second = Chat.onTerminal(t, [...args, '--session', 'trip'], env);
    await second.shows('you › \x1b');
    const shown = second.output.replaceAll('\r', '');
    t.match(shown, /the chat\.\nyou › Second\nassistant › Two\.\nyou › Third\nassistant › Three\.\n/);
    second.type('/sessions nowhere\r');
    await second.shows('assistant has no session nowhere yet: the next message');
    second.type('/sessions trip\r');
    await second.shows('you › Second', 2);
    second.type('/exit\r');
    t.equal(await second.code(), 0);
  });
}

t.test('chat in process names no session that it does not keep', async (t) => {
  const file = t.testdir({ 'plugboard.yaml': `transports: {}\n${AGENTS}` });
  const chat = Chat.piped(t, ['-c', `${file}/plugboard.yaml`], { MODEL_URL: 'http://127.0.0.1:1', MODEL_KEY: 'key' });
  chat.type('/new\n/exit\n');
  t.equal(await chat.code(), 0);
  t.equal(chat.output, 'Talking to assistant, a new conversation\n');
});

t.test('chat --session names the running server that holds the sessions', async (t) => {
  const config = `transports: { http: { port: 0 } }\nsessions: { use: sqlite, path: sessions.db }\n${AGENTS}`;
  const folder = t.testdir({ 'plugboard.yaml': config });
  const env = { MODEL_URL: 'http://127.0.0.1:1', MODEL_KEY: 'key', TMPDIR: tmpdir() };
  const server = new Plugboard(t, ['start'], { cwd: folder, env });
  await server.prints('address');
  const chat = Chat.piped(t, ['-c', join(folder, 'plugboard.yaml'), '--session', 'trip'], env);
  t.equal(await chat.code(), 1);
  t.match(
    chat.errors,
    /is in use by another process[\s\S]*\nserver \d+ runs with this file: add --url http:\/\/127\.0\.0\.1:\d+ to continue its sessions\n$/,
  );
  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
});
