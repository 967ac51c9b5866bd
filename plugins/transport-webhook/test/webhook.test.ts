import { spawn } from 'node:child_process';
import { on } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { TurnError } from '@plugboard/kernel/contracts';
import { checkOptions, eventually, ModelServer, pluginContract, startServer, systemClock } from '@plugboard/testing';
import { testHttpRequest } from '@plugboard/transport-http/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { Signatures } from '../src/signatures.js';
import { webhookRoute } from '../src/webhook-route.js';
import { Receiver, SECRET } from './receiver.js';

const README = new URL('../README.md', import.meta.url);
const OTHER_SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';

pluginContract(t.test, plugin, {
  packageDir: new URL('..', import.meta.url),
  config: { secret: SECRET, replyUrl: 'https://crm.example.com/replies', agent: 'helper' },
  check: { entries: (section) => (section === 'agents' ? ['helper'] : []) },
});

async function serve(t: Test, { secret = SECRET } = {}) {
  const receiver = await Receiver.start(t);
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const server = await startServer(
    `
    transports:
      http: { port: 0, bodyLimit: 1mb }
      desk:
        use: webhook
        secret: ${secret}
        replyUrl: "\${REPLY_URL}"
        allowPrivate: [127.0.0.1]
        agent: helper
    models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 } }
    agents: { helper: { model: fast }, other: { model: fast } }
    sessions: { use: sqlite, path: ./sessions.db }
    log: { level: debug }
    `,
    { env: { REPLY_URL: receiver.url, MODEL_URL: models.url } },
  );
  t.teardown(() => server.stop());
  const address = `${server.url}/channels/desk`;
  return { receiver, models, server, address, say: receiver.say.bind(receiver, address) };
}

t.test('WH-1 a message signed by standardwebhooks is taken, and the reply verifies there', async (t) => {
  const { receiver, models, say, server } = await serve(t);
  models.enqueue({ text: 'Hi Ann.' });
  const taken = await say('msg_2Kq7', { chat: '4711', sender: 'ann', text: 'Hello', priority: 9 });
  t.match(taken, { status: 202, body: { status: 'accepted', id: 'msg_2Kq7' } });
  await eventually(() => receiver.replies.length === 1);
  const [reply] = receiver.replies;
  t.match(reply?.id, /^msg_[0-9A-Za-z]{20}$/);
  const { timestamp, ...body } = reply?.body ?? {};
  t.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.strictSame(body, { type: 'message.reply', chat: '4711', text: 'Hi Ann.', reply_to: 'msg_2Kq7', agent: 'helper' });
  t.strictSame(Object.keys(reply?.body ?? {}), ['type', 'timestamp', 'chat', 'text', 'reply_to', 'agent']);
  t.equal(reply?.headers['content-type'], 'application/json');
  t.strictSame(receiver.forged, []);
  t.notMatch(JSON.stringify(server.logs), /whsec_|Hello/);
});

t.test('WH-1 the same id again gets the same answer and runs nothing, whatever its body', async (t) => {
  const { receiver, models, say, server } = await serve(t);
  const first = await say('one', { chat: 'c', sender: 'ann', text: 'Hello' });
  const again = await Promise.all([
    say('one', { chat: 'c', sender: 'ann', text: 'Hello' }),
    say('one', { chat: 'other', sender: 'ben', text: 'Something else' }),
  ]);
  for (const { status, body } of again) t.strictSame([status, body], [first.status, first.body]);
  await say('two', { chat: 'c', sender: 'ann', text: 'Bye' });
  await eventually(() => receiver.replies.length === 2);
  t.equal(models.requests.length, 2);
  const lines = server.logs.filter(({ msg }) => msg === 'request').map(({ token_name, address }) => [token_name, address]);
  t.strictSame(lines, Array(4).fill(['desk', undefined]), 'each signed message has its line');
});

t.test('WH-1 forged, old and invalid messages are refused', async (t) => {
  const { receiver, models, address, say, server } = await serve(t);
  const message = { chat: 'c', sender: 'ann', text: 'Hello' };
  const body = JSON.stringify(message);
  const post = async (headers: Record<string, string>, text: string | Uint8Array = body) => {
    const all = { 'content-type': 'application/json', ...headers };
    const response = await fetch(address, { method: 'POST', headers: all, body: text });
    const { error } = (await response.json()) as { readonly error: { readonly code: string } };
    return [response.status, error.code];
  };
  const stranger = await Receiver.start(t, OTHER_SECRET);
  const right = receiver.sign('one', body);
  const unsigned: Record<string, Record<string, string>> = {
    'no headers': {},
    'another secret': stranger.sign('one', body),
    'another body': receiver.sign('one', `${body} `),
    'another id': { ...right, 'webhook-id': 'two' },
    'another version': { ...right, 'webhook-signature': String(right['webhook-signature']).replace('v1,', 'v2,') },
    'an old timestamp': receiver.sign('one', body, new Date(Date.now() - 301_000)),
    'a timestamp ahead': receiver.sign('one', body, new Date(Date.now() + 302_000)),
    'no timestamp': { ...right, 'webhook-timestamp': 'now' },
  };
  for (const [what, headers] of Object.entries(unsigned)) t.strictSame(await post(headers), [401, 'invalid_signature'], what);
  // One line for a caller: the next ones are counted.
  t.match(
    server.logs.filter(({ refused }) => refused !== undefined),
    [{ route: '/channels/desk', status: 401, refused: 'webhook-id is missing' }],
  );
  const invalid: readonly (readonly [string, string])[] = [
    ['one', 'not JSON'],
    ['one', '[]'],
    ['one', '{"chat":"c","text":"Hello"}'],
    ['one', '{"chat":7,"sender":"ann","text":"Hello"}'],
    ['one', `{"chat":"${'c'.repeat(257)}","sender":"ann","text":"Hello"}`],
    ['one', '{"chat":"","sender":"ann","text":"Hello"}'],
    ['one', '{"chat":"a\\u0000b","sender":"ann","text":"Hello"}'],
    ['one', '{"chat":"c","sender":"ann"}'],
    ['one', '{"chat":"c","sender":"ann","text":" "}'],
    ['one', '{"chat":"c","sender":"ann","text":7}'],
    ['one', '{"chat":"c","sender":"ann","images":["https://example.com/cat.png"]}'],
    ['one', '{"chat":"c","sender":"ann","images":["data:image/png;base64,aGVsbG8="]}'],
    ['o.ne', body],
    ['o'.repeat(257), body],
  ];
  for (const [id, text] of invalid) t.equal((await post(receiver.sign(id, text), text))[0], 400, text.slice(0, 80));
  const bytes = Buffer.from([...Buffer.from('{"chat":"c","sender":"ann","text":"'), 0xff, ...Buffer.from('"}')]);
  t.equal((await post(receiver.sign('one', bytes.toString('latin1')), bytes))[0], 401, 'the signature is over the bytes');
  const large = JSON.stringify({ ...message, text: 'x'.repeat(2 ** 20) });
  t.equal((await post(receiver.sign('large', large), large))[0], 413);
  t.equal(models.requests.length, 0);
  t.equal((await say('one', message)).status, 202, 'a refused id is not used up');
  await eventually(() => receiver.replies.length === 1);
});

t.test('WH-1 the log, not the answer, says why a message is refused', async (t) => {
  const receiver = await Receiver.start(t);
  const inbox = { receive: async () => [], connected() {}, failed() {} };
  const route = webhookRoute({ name: 'desk', signatures: new Signatures([SECRET]), inbox, clock: systemClock });
  const body = Buffer.from('{}');
  const right = receiver.sign('one', '{}');
  const at = (seconds: number) => receiver.sign('one', '{}', new Date(Date.now() + seconds * 1_000));
  const cases: readonly (readonly [object, RegExp])[] = [
    [{}, /^webhook-id is missing$/],
    [{ ...right, 'webhook-timestamp': undefined }, /^webhook-timestamp is missing$/],
    [{ ...right, 'webhook-signature': undefined }, /^webhook-signature is missing$/],
    [{ ...right, 'webhook-id': 'two' }, /^the signature is wrong$/],
    [{ ...right, 'webhook-timestamp': 'now' }, /^webhook-timestamp is not a number of seconds$/],
    [at(-310), /^the message is 31\d s old$/],
    [at(320), /^the message is 3[12]\d s ahead$/],
  ];
  for (const [headers, refused] of cases) {
    const notes: object[] = [];
    const request = testHttpRequest({ headers: { ...headers }, body, note: (fields) => notes.push(fields) });
    await t.rejects(route.handle(request) as Promise<unknown>, { status: 401, message: /missing, wrong, or more than 5/ });
    t.match(notes, [{ refused }]);
  }
});

t.test('WH-1 CH-10 a message that is not taken is refused with the reason, to be sent again', async (t) => {
  const receiver = await Receiver.start(t);
  const full = 'More waits than `transports.desk.waiting` allows.';
  for (const [error, code, message, note] of [
    [new TurnError('overloaded', full), 'overloaded', full, undefined],
    [new Error('disk full'), 'unavailable', 'The message could not be stored. Send it again.', 'Error: disk full'],
  ] as const) {
    const inbox = { receive: () => Promise.reject(error), connected() {}, failed() {} };
    const route = webhookRoute({ name: 'desk', signatures: new Signatures([SECRET]), inbox, clock: systemClock });
    const text = JSON.stringify({ chat: 'c', sender: 'ann', text: 'Hello' });
    const notes: Record<string, unknown> = {};
    const request = testHttpRequest({
      headers: { ...receiver.sign('one', text) },
      body: Buffer.from(text),
      note: (fields) => Object.assign(notes, fields),
    });
    const refused = { status: 503, code, message, headers: { 'retry-after': '5' } };
    await t.rejects(route.handle(request) as Promise<unknown>, refused);
    t.equal(notes.not_stored, note);
  }
});

t.test('WH-1 while the secret changes, messages may be signed with each, and replies are signed with all', async (t) => {
  const next = await Receiver.start(t, OTHER_SECRET);
  const { receiver, address } = await serve(t, { secret: `[${SECRET}, ${OTHER_SECRET}]` });
  t.equal((await receiver.say(address, 'one', { chat: 'c', sender: 'ann', text: 'Hello' })).status, 202);
  t.equal((await next.say(address, 'two', { chat: 'c', sender: 'ann', text: 'Hello' })).status, 202);
  await eventually(() => receiver.replies.length === 2);
  for (const { text, headers } of receiver.replies) t.ok(next.verifies(text, headers));
  t.strictSame(receiver.forged, []);
});

t.test('WH-1 commands are answered by notices, failures by failures, and images reach the model', async (t) => {
  const { receiver, models, say } = await serve(t);
  const png = `data:image/png;base64,${Buffer.from('\x89PNG\r\n\x1a\n and pixels', 'latin1').toString('base64')}`;
  models.enqueue({ text: 'A cat.' }, { status: 400, body: { error: { message: 'I refuse' } } });
  await say('one', { chat: 'c', sender: 'ann', images: [png], text: 'What is it?' });
  await say('two', { chat: 'c', sender: 'ann', text: '/agent other' });
  await say('three', { chat: 'c', sender: 'ann', text: 'Hello' });
  await eventually(() => receiver.replies.length === 3);
  t.match(
    receiver.replies.map(({ body }) => body),
    [
      { type: 'message.reply', text: 'A cat.', reply_to: 'one', agent: 'helper' },
      { type: 'message.notice', text: 'The agent other answers here now.', reply_to: 'two' },
      { type: 'message.failed', reply_to: 'three' },
    ],
  );
  t.match(models.requests[0]?.body.messages.at(-1)?.content, [
    { type: 'image_url', image_url: { url: png } },
    { type: 'text', text: 'What is it?' },
  ]);
});

t.test('the file is refused with a weak secret, a private address or an agent of another project', async (t) => {
  const problems = (config: object) => {
    const entries = (section: string, where?: object) =>
      section === 'projects' ? ['lab'] : where === undefined ? ['helper', 'chemist'] : ['chemist'];
    const { faults } = checkOptions(
      plugin,
      { agent: 'helper', secret: SECRET, replyUrl: 'https://crm.example.com/', ...config },
      { entries },
    );
    return faults;
  };
  t.strictSame(problems({}), []);
  t.strictSame(problems({ allowPrivate: ['10.0.0.0/8', '::1'], replyUrl: 'http://10.1.2.3/' }), []);
  for (const [config, fault] of [
    [{ secret: 'short' }, /secret.*`whsec_` and 24 to 64 bytes/],
    [{ secret: ['whsec_c2hvcnQ='] }, /secret\[0\].*openssl/],
    [{ replyUrl: 'http://169.254.169.254/latest' }, /replyUrl.*private address.*allowPrivate: \[169\.254\.169\.254\]/],
    [{ replyUrl: 'http://[::1]:80/' }, /replyUrl.*private address/],
    [{ replyUrl: 'http://localhost:80/' }, /replyUrl.*allowPrivate: \[127\.0\.0\.1\]/],
    [{ replyUrl: 'http://2130706433/' }, /replyUrl.*private/],
    [{ replyUrl: 'ftp://crm.example.com/' }, /replyUrl.*ftp/],
    [{ allowPrivate: ['10.0.0.0/33'] }, /allowPrivate\[0\].*neither an address/],
    [{ agent: 'helpr' }, /agent.*did you mean "helper"/],
    [{ agents: ['chemist'] }, /agents\[0\].*"lab"/],
  ] as const) {
    const [first = 'none', ...others] = problems(config);
    t.match(first, fault);
    t.strictSame(others, []);
  }
});

t.test('the receiver of the README takes replies, and refuses forged ones', async (t) => {
  const [, code = ''] = /verifies each reply[\s\S]*?```js\n([\s\S]*?)```/.exec(readFileSync(README, 'utf8')) ?? [];
  const file = join(t.testdir({ 'receiver.mjs': code.replace('9000', '0') }), 'receiver.mjs');
  const port = `await new Promise((resolve) => server.once('listening', resolve)); console.log(server.address().port);`;
  appendFileSync(file, port);
  const program = spawn(process.execPath, [file], { env: { DESK_SECRET: SECRET }, stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => program.kill());
  const lines = on(createInterface({ input: program.stdout }), 'line');
  const address = `http://127.0.0.1:${(await lines.next()).value}/`;
  const { sign } = await Receiver.start(t).then((receiver) => ({ sign: receiver.sign.bind(receiver) }));
  const body = JSON.stringify({ type: 'message.reply', chat: '4711', text: 'Hi Ann.' });
  const post = async (text: string) =>
    (await fetch(address, { method: 'POST', headers: sign('msg_1', body), body: text })).status;
  t.equal(await post(`${body} `), 401);
  t.equal(await post(body), 204);
  t.strictSame((await lines.next()).value, ['msg_1 4711 Hi Ann.']);
});
