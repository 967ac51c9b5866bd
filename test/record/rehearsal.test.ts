/** Many turns, and what is in no recording. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { saying } from '../support/test-server.js';
import { CONFIG, RecordedServer } from './support.js';

t.test('1,000 turns are rehearsed, and one changed word is found in each', async (t) => {
  const server = await RecordedServer.start(t);
  const { app } = server;
  app.models.respond(({ body }) =>
    body.messages.at(-1)?.role === 'tool'
      ? { text: 'Open.' }
      : { toolCalls: [{ name: 'desk__look', arguments: { ticket: body.messages.length } }] },
  );
  for (let round = 0; round < 100; round++) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => app.chat(saying(`Look ${round}.${index}`))));
  }
  await server.files(1000);
  const started = performance.now();
  const same = await server.rehearse();
  const seconds = (performance.now() - started) / 1000;
  t.match(same, { code: 0, turns: 1000, same: 1000, changed: 0, failed: 0 });
  t.comment(`1,000 turns with a tool rehearsed in ${seconds.toFixed(1)} s`);
  t.match(await server.rehearse((config) => config.replace('careful', 'quick')), {
    code: 1,
    turns: 1000,
    changed: 1000,
    kinds: { prompt: 1000 },
  });
});

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
