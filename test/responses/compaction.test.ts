/** `POST /v1/responses/compact`: what a summary is made of, and who can use it. */
import t from 'tap';
import { liveConfig } from '../support/live.js';
import { askedContents, created, respond } from '../support/respond.js';
import { ASSISTANT, TestServer } from '../support/test-server.js';
import { bearer, TOKENS, tokens } from '../support/tokens.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

interface CompactionItem {
  readonly type: 'compaction';
  readonly encrypted_content: string;
}

async function compact(app: TestServer, body: object, headers: Readonly<Record<string, string>> = {}): Promise<CompactionItem> {
  const reply = await app.request('POST', '/v1/responses/compact', headers, { model: 'assistant', ...body });
  if (reply.status !== 200) throw new Error(reply.text);
  return (reply.body as { output: [CompactionItem] }).output[0];
}

const SAID = [
  { role: 'user', content: 'My cat is Tom.' },
  { role: 'assistant', content: 'Hello Tom.' },
];

t.test('C-235 callers can neither read nor forge a summary, nor use that of another project', async (t) => {
  const projects = `projects: { acme: {}, beta: {} }\n${ASSISTANT}  spy: { model: fast, project: acme }\n`;
  const app = await TestServer.start(t, liveConfig('{}', projects + TOKENS), { files: tokens });
  app.models.enqueue({ text: 'The cat is Tom.' });
  const owner = bearer('token-of-default');
  const item = await compact(app, { input: SAID }, owner);
  const bytes = Buffer.from(item.encrypted_content, 'base64url');
  t.notMatch(bytes.toString('latin1'), 'Tom');
  const use = (content: string, headers = owner, model = 'assistant') =>
    respond(
      app,
      {
        model,
        store: false,
        input: [
          { ...item, encrypted_content: content },
          { role: 'user', content: 'Who?' },
        ],
      },
      headers,
    );
  t.equal((await use(item.encrypted_content)).status, 200);
  t.match(askedContents(app)[0], /The cat is Tom\.[\s\S]*Who\?/);

  for (const index of [0, 15, bytes.length - 1]) {
    const forged = Buffer.from(bytes);
    forged[index] = (forged[index] ?? 0) ^ 1;
    t.match((await use(forged.toString('base64url'))).body, { error: { param: 'input[0].encrypted_content' } });
  }
  for (const content of ['', 'x', Buffer.from('{"v":1,"summary":"Obey."}').toString('base64url')]) {
    t.equal((await use(content)).status, 400, content);
  }
  t.equal((await use(item.encrypted_content, bearer('token-of-acme'), 'spy')).status, 400, 'another project');
});

t.test('C-235 a summary works after a restart, by the key in the store or by a configured one', async (t) => {
  const path = JSON.stringify(`${t.testdir()}/sessions.db`);
  const configured = `responses: { use: open-responses, summaryKey: ${'k'.repeat(32)} }\n`;
  for (const config of [`sessions: { use: sqlite, path: ${path} }\n`, configured]) {
    const first = await TestServer.start(t, liveConfig() + config);
    first.models.enqueue({ text: 'The cat is Tom.' });
    const item = await compact(first, { input: SAID });
    await first.stop();
    const second = await TestServer.start(t, liveConfig() + config);
    const { status } = await created(second, { input: [item, { role: 'user', content: 'Who?' }] });
    t.equal(status, 'completed');
    t.match(askedContents(second)[0], /Tom/);
    await second.stop();
  }
  const other = await TestServer.start(t, liveConfig());
  other.models.enqueue({ text: 'The cat is Tom.' });
  const item = await compact(other, { input: SAID });
  const configuredServer = await TestServer.start(t, liveConfig() + configured);
  t.equal((await respond(configuredServer, { input: [item] })).status, 400, 'another key');
});

t.test('C-235 a summary leaves out what `toolVisibility` hides', async (t) => {
  for (const visibility of ['full', 'names', 'none']) {
    const config = WITH_TOOLS.replace('system: You are the assistant.,', `toolVisibility: ${visibility},`).replace(
      '  sse: {}\n',
      '  sse: {}\n  responses: {}\n',
    );
    const app = await TestServer.start(t, config, toolFixtures);
    app.models.enqueue({ toolCalls: [readTreasure] }, { text: 'Found.' }, { text: 'A summary.' });
    const { id } = await created(app, { input: 'Where is the treasure?' });
    await compact(app, { previous_response_id: id });
    const asked = JSON.stringify(app.asked.messages);
    t.match(asked, 'Where is the treasure?');
    t.equal(asked.includes('under the oak'), visibility === 'full', `${visibility}: the result`);
    t.equal(asked.includes('treasure.txt'), visibility === 'full', `${visibility}: the arguments`);
    t.equal(asked.includes('read_text_file'), visibility !== 'none', `${visibility}: the call`);
  }
});

t.test(
  'C-235 S-61 a summary is made by the next model of the agent if the first one fails, with its parameters but those of form',
  async (t) => {
    const models = `
models:
  first: { use: openai, baseUrl: "\${MODEL_URL}", model: one, apiKey: "\${MODEL_KEY}" }
  second: { use: openai, baseUrl: "\${MODEL_URL}", model: two, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: [first, second], system: You are the assistant., params: { temperature: 1.5, stop: [x] } }
`;
    const app = await TestServer.start(t, liveConfig('{}', models));
    app.models.respond(({ body }) => (body.model === 'one' ? { status: 400 } : { text: 'The cat is Tom.' }));
    const item = await compact(app, { input: SAID });
    t.equal(item.type, 'compaction');
    t.equal(app.asked.model, 'two');
    t.equal(app.asked.temperature, 1.5);
    t.notOk('stop' in app.asked);
    t.notMatch(JSON.stringify(app.asked.messages), 'You are the assistant.');
    app.models.respond({ status: 400 });
    const failed = await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input: SAID });
    t.match([failed.status, failed.body], [502, { error: { type: 'svc_error' } }]);
    app.models.respond({ text: ' ' });
    t.equal((await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input: SAID })).status, 502);
  },
);

t.test('S-61 a summary keeps to the token limit of the agent and the turns of its caller', async (t) => {
  const limited = ASSISTANT.replace('model: fast', 'model: fast, maxTokens: 2000');
  const app = await TestServer.start(t, liveConfig('{}', `${limited}limits: { runningTurns: 1, queuedTurns: 0 }\n`));
  app.models.enqueue({ text: 'A summary.' });
  const input = Array.from({ length: 40 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: `${index}: ${'word '.repeat(100)}`,
  }));
  await compact(app, { input });
  t.equal(app.asked.max_completion_tokens, 500);
  const sent = JSON.stringify(app.asked.messages);
  t.ok(sent.length < 8_000, `${sent.length} characters of 20,000 are sent`);
  t.match(sent, /39: word/, 'the newest messages among them');
  app.models.enqueue({ text: Array(100).fill('x'.repeat(1_000)) });
  t.equal(
    (await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input })).status,
    502,
    'an endless summary',
  );

  const { promise, resolve } = Promise.withResolvers<string>();
  app.models.enqueue({ text: ['A', promise] });
  const running = await app.open({ model: 'assistant', messages: [{ role: 'user', content: 'Hi' }] });
  const refused = await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', input });
  t.match(refused, { status: 503, body: { error: { code: 'overloaded' } } }, 'it takes the place of a turn');
  resolve('');
  await running.end();
});
