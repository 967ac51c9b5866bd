/** What a rehearsal costs, and what is in no recording. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { saying } from '../support/test-server.js';
import { CONFIG, RecordedServer } from './support.js';

t.test('OB-13 a canary in a key, token, header or password is in no recording, and one in a message is', async (t) => {
  const canary = (where: string) => `canary-${where}-0123456789abcdef`;
  const config = `${CONFIG}auth: { bearer: { tokens: [{ name: anna, project: default, token: "\${TOKEN}" }] } }\n`.replace(
    'model: small-1,',
    `model: small-1, headers: { x-secret: ${canary('model-header')} },`,
  );
  const server = await RecordedServer.start(t, config, { env: { TOKEN: canary('token'), MODEL_KEY: canary('key') } });
  const { app } = server;
  app.models.enqueue({ status: 401 }, { toolCalls: [{ name: 'desk__look', arguments: { ticket: 1 } }] }, { text: 'Open.' });
  const headers = {
    authorization: `Bearer ${canary('token')}`,
    cookie: `password=${canary('password')}`,
    'x-api-key': canary('api-key'),
    'idempotency-key': canary('idempotency'),
  };
  const body = saying(canary('message'), { session_id: canary('session'), metadata: { note: 'n' } });
  t.equal((await app.chat(body, headers)).status, 200);
  const [name = ''] = await server.files(1);
  const text = await readFile(join(server.folder, name), 'utf8');
  t.strictSame([...new Set(text.match(/canary-[a-z-]+/g))], ['canary-message-']);
  t.strictSame(
    (await readdir(server.folder)).filter((one) => !one.endsWith('.jsonl')),
    [],
  );
});

t.test('with --live the models answer, and a call that was not recorded is missing', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.enqueue({ toolCalls: [{ name: 'desk__close', arguments: { ticket: 1 } }] }, { text: 'Closed.' });
  await app.chat(saying('Close 1'));
  await server.files(1);
  const ran = app.models.requests.length;
  app.models.enqueue(
    {
      toolCalls: [
        { name: 'desk__close', arguments: '{ "ticket": 1 }' },
        { name: 'desk__close', arguments: { ticket: 2 } },
      ],
    },
    { text: 'Closed both.' },
  );
  const { code, changes, kinds } = await server.rehearse(
    (config) => config.replaceAll('http://127.0.0.1:9/v1', app.models.url),
    ['--live'],
  );
  t.equal(code, 1);
  t.strictSame(Object.keys(kinds), ['messages', 'calls', 'missing', 'answer']);
  t.match(
    changes[0]?.changes.find(({ kind }) => kind === 'missing'),
    {
      step: 1,
      before: null,
      after: { tool: 'desk__close', arguments: { ticket: 2 } },
    },
  );
  t.equal(app.models.requests.length, ran + 2);
  t.match(app.models.requests.at(-1)?.body.messages.slice(-2), [
    { role: 'tool', content: 'closed 1 in call 1' },
    { role: 'tool', content: /was not recorded/ },
  ]);
});

t.test('what the recorded calls cost, and what they would cost by other prices', async (t) => {
  const priced = CONFIG.replace(
    'plugins: { record: {} }',
    `plugins:
  usage:
    prices: { fast: { input: 0.25, output: 2, cachedInput: 0.025 }, other: { input: 1, output: 10 } }
    budgets: [{ amount: 0.0021, per: total }]
  record: {}`,
  );
  const server = await RecordedServer.start(t, priced);
  const { app } = server;
  const usage = { promptTokens: 1000, completionTokens: 100, cachedTokens: 400 };
  app.models.enqueue({ status: 401 }, { text: 'One.', usage }, { text: 'Two.', usage }, { text: 'Three.', usage });
  await app.chat(saying('one'));
  await app.chat(saying('two'));
  await server.files(2);
  // One answer of `other`: 0.001 + 0.001. One of `fast`: 0.00015 + 0.00001 + 0.0002.
  const cost = { currency: 'USD', before: '0.00236', after: '0.00236' };
  t.match(await server.rehearse(), { code: 0, turns: 2, cost });
  // Both of `other`, at half the price of input.
  const cheaper = await server.rehearse((config) => config.replace('[fast, other]', 'other').replace('input: 1,', 'input: 0.5,'));
  t.match(cheaper, { kinds: { model: 1 }, cost: { currency: 'USD', before: '0.00236', after: '0.003' } });
  const { output } = await server.run('rehearse');
  t.match(output, /\ncost: 0\.00236 before, 0\.00236 after \(USD\)$/);
});
