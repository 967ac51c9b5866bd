import { readdirSync } from 'node:fs';
import { AgentRuntimes } from '@plugboard/kernel';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';
import { bearer, TOKENS, tokens } from '../../support/tokens.js';

const AGENT = `
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
`;

/** The user messages in the last request to the model. */
const heard = ({ asked }: TestServer) => asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);

t.test('C-128 one key in two projects names two sessions', async (t) => {
  const agents = `${AGENT}  billing: { model: fast, project: acme }\nprojects: { acme: { defaultAgent: billing }, beta: {} }\n`;
  const server = await TestServer.start(t, `${TRANSPORTS}${agents}${TOKENS}`, { files: tokens });
  const say = async (text: string, token: string, model: string) => {
    await server.chat({ ...saying(text, { session_id: 's' }), model }, bearer(token));
    return heard(server);
  };
  await say('mine', 'token-of-acme', 'billing');
  t.strictSame(await say('theirs', 'token-of-default', 'billing'), ['theirs'], 'the same agent, called from the default project');
  t.strictSame(await say('mine again', 'token-of-acme', 'billing'), ['mine', 'mine again']);
});

t.test('C-133 a retry during the first attempt joins it, as JSON and as a stream', async (t) => {
  const server = await TestServer.start(t, TRANSPORTS + AGENT);
  const runtime = server.started.server.extensions(AgentRuntimes).one();
  const run = runtime.run.bind(runtime);
  let attempts = 0;
  runtime.run = (request) => {
    attempts++;
    return run(request);
  };
  for (const stream of [false, true]) {
    const fields = { session_id: `stream: ${stream}` };
    const before = server.models.requests.length;
    const gate = Promise.withResolvers<void>();
    server.models.enqueue({ text: ['Hello', gate.promise, ' there'] });
    const body = saying('Hi', fields);
    const send = async (headers: Readonly<Record<string, string>>) =>
      stream ? (await server.stream(body, headers)).text : answerOf(await server.chat(body, headers));
    const texts = [send({}), send({ 'x-stainless-retry-count': '1' })];
    await server.models.received(before + 1);
    await eventually(() => attempts % 3 === 2); // both have arrived; a third request follows below
    gate.resolve();
    t.strictSame(await Promise.all(texts), ['Hello there', 'Hello there']);
    t.equal(server.models.requests.length, before + 1, 'one turn for both');
    await server.chat(saying('And?', fields));
    t.strictSame(heard(server), ['Hi', 'And?'], 'one turn in the history');
  }
});

t.test('C-134 a crashing session does not affect other sessions or the server', async (t) => {
  const DEFECT = `
    import { definePlugin, Interceptors } from '@plugboard/kernel';
    export default definePlugin({
      name: 'defect', apiVersion: 1, summary: 'Breaks some turns', configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(Interceptors, async function* (turn, next) {
        if (turn.session === 'api:broken') throw new TypeError('a defect');
        yield* next(turn);
      }),
    });
  `;
  const yaml = `${TRANSPORTS}${AGENT}plugins:\n  defect: { use: ./defect.mjs }\n`;
  const server = await TestServer.start(t, yaml, { files: { 'defect.mjs': DEFECT } });
  const well = await server.chat(saying('one', { session_id: 'well' }));
  t.equal(well.status, 200);
  for (let crash = 1; crash <= 4; crash++) {
    const broken = await server.chat(saying('x', { session_id: 'broken' }));
    t.equal(broken.status, 502);
    t.equal(broken.headers.get('x-should-retry'), 'false');
    t.match(errorOf(broken).message, crash <= 3 ? /error/i : /closed for a minute/);
    t.equal(answerOf(await server.chat(saying(`two ${crash}`, { session_id: 'well' }))), `two ${crash}`);
  }
  t.match((await server.get('/health')).body, { status: 'ok', ready: true });
});

t.test(
  'C-135 a session id is any text of up to 512 bytes without control characters and unpaired surrogates, and never a path',
  async (t) => {
    const server = await TestServer.start(t, `${TRANSPORTS}${AGENT}sessions: { use: sqlite, path: ./sessions.db }\n`);
    const odd = [
      '../../etc/passwd',
      '..\\..\\x',
      '/etc/passwd',
      'a/b',
      '{"a":1}',
      "'; DROP TABLE session; --",
      '☃ é ü 日本',
      '%2e%2e%2f',
      ' a ',
      'é'.repeat(256),
    ];
    for (const id of odd) {
      await server.chat(saying('one', { session_id: id }));
      t.equal((await server.chat(saying('two', { session_id: id }))).status, 200);
      t.strictSame(heard(server), ['one', 'two'], id);
    }
    for (const id of ['é'.repeat(257), 'x'.repeat(513), 'a\u0000b', 'a\nb', 'a\u007fb', '\ud800', 'x\udc00y']) {
      const reply = await server.chat(JSON.stringify(saying('x', { session_id: id })));
      t.equal(reply.status, 400, JSON.stringify(id.slice(0, 8)));
      t.equal(errorOf(reply).param, 'session_id');
    }
    const files = readdirSync(server.started.folder).filter((name) => !name.startsWith('sessions.db'));
    t.strictSame(files, ['plugboard.yaml'], 'nothing was written by such a name');
    const lines = server.accessLog.map((line) => JSON.stringify(line));
    t.notOk(
      lines.some((line) => odd.some((id) => id.length > 3 && line.includes(JSON.stringify(id).slice(1, -1)))),
      'the log shows no key',
    );
  },
);

t.test('C-136 fields not listed in sessionFrom are not a key', async (t) => {
  const transports = (from: string) => TRANSPORTS.replace('chat-completions: {}', `chat-completions: { sessionFrom: ${from} }`);
  const ask = async (server: TestServer, fields: object, headers: Readonly<Record<string, string>>) => {
    await server.chat(saying('one', fields), headers);
    const reply = await server.chat(saying('two', fields), headers);
    t.equal(reply.status, 200);
    return { kept: heard(server).length === 2, ignored: reply.headers.get('x-ignored-params') };
  };
  const header = { 'x-session-id': 'h' };
  const only = await TestServer.start(t, transports('[session_id]') + AGENT);
  t.strictSame(await ask(only, { user: 'ann' }, {}), { kept: false, ignored: 'user' });
  t.strictSame(await ask(only, {}, header), { kept: false, ignored: null });
  t.match(await ask(only, { user: 'ann', session_id: 's' }, header), { kept: true, ignored: 'user' });
  const users = await TestServer.start(t, transports('[user]') + AGENT);
  t.match(await ask(users, { user: 'ann' }, header), { kept: true });
  t.match(await ask(users, { session_id: 's' }, {}), { kept: false, ignored: 'session_id' });
  await eventually(() => users.accessLog.length === 4);
});
