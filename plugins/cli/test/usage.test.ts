import t from 'tap';
import { saying, TestServer } from '../../../test/support/test-server.js';
import { run } from './plugboard.js';

const TOKEN = 'token-of-the-tests-0001';
const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
auth:
  bearer: { tokens: [{ name: ci, project: acme, token: ${TOKEN} }] }
projects: { acme: {} }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast, project: acme }
`;
const USAGE = `
plugins:
  usage:
    prices: { fast: { input: 0.25, cachedInput: 0.025, output: 2 } }
    budgets: [{ amount: 1.5, per: total, each: token }]
`;

t.test('plugboard usage prints what a running server has counted', async (t) => {
  const server = await TestServer.start(t, YAML + USAGE);
  server.models.respond({ text: 'Hello.', usage: { promptTokens: 1_000, cachedTokens: 800, completionTokens: 40 } });
  await server.chat(saying('Hello'), { authorization: `Bearer ${TOKEN}` });
  const usage = (args: readonly string[], token = TOKEN) =>
    run(t, ['usage', ...args], { cwd: t.testdirName, env: { PLUGBOARD_TOKEN: token } });
  t.testdir({});
  const range = ['--url', server.url, '--from', '2026-01-01', '--to', '2099-12-31'];

  const { code, stdout, stderr } = await usage([...range, '--by', 'project,token']);
  t.equal(stderr, '');
  t.equal(code, 0);
  t.equal(
    stdout,
    [
      '2026-01-01 to 2099-12-31 (UTC), USD',
      'project  token  calls  input  cached  output  cost',
      'acme     ci     1      1000   800     40      0.00015',
      'total           1      1000   800     40      0.00015',
      '',
      'budget  per    each   spent    left',
      '1.5     total  token  0.00015  1.49985',
      '',
    ].join('\n'),
  );
  const json = JSON.parse((await usage([...range, '--json'])).stdout);
  t.match(json, { object: 'usage', data: [{ agent: 'assistant', model: 'fast', cost: '0.00015' }] });

  t.match(await usage(range, 'token-of-nobody-00000'), { code: 1, stderr: /401.*Set PLUGBOARD_TOKEN/ });
  t.match(await usage(['--url', server.url, '--by', 'user']), { code: 1, stderr: /400: Invalid value: 'user'/ });
  t.match(await usage([]), { code: 2, stderr: /needs --url URL/ });
});

t.test('plugboard usage says what a server lacks', async (t) => {
  const server = await TestServer.start(t, YAML);
  const env = { PLUGBOARD_TOKEN: TOKEN };
  const { code, stderr } = await run(t, ['usage', '--url', server.url], { cwd: t.testdir({}), env });
  t.equal(code, 1);
  t.match(stderr, /counts no usage: add "usage: \{\}" under "plugins"/);
});
