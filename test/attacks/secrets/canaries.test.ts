import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import type { Script } from '@plugboard/testing';
import t from 'tap';
import { run } from '../../../plugins/cli/test/plugboard.js';
import { saying } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { Canaries, startWithSecrets, VARIABLES, writtenFiles } from '../support/canaries.js';
import { everyRoute } from '../support/every-route.js';
import { type Pair, sendRaw } from '../support/send-raw.js';

const { server, yaml, env, files, credentials, valid } = await startWithSecrets(t);
const canaries = new Canaries([...Object.values(VARIABLES), ...Object.values(credentials)]);
/** All answers that callers received. */
const answers: string[] = [];

/** All diagnostics that were published, as a subscriber that prints them would. */
const published: string[] = [];
const CHANNELS = ['turn', 'step', 'tool', 'summary', 'store'].flatMap((name) =>
  ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map((event) => `tracing:plugboard.${name}:${event}`),
);
const publish = (context: unknown) => void published.push(inspect(context, { depth: 8 }));
for (const channel of CHANNELS) subscribe(channel, publish);
t.teardown(() => CHANNELS.map((channel) => unsubscribe(channel, publish)));

const OPS = bearer(VARIABLES.OPS_TOKEN);
const chat = async (body: unknown, headers: Readonly<Record<string, string>> = OPS) => {
  const reply = await server.chat(body, headers);
  answers.push(reply.text, JSON.stringify([...reply.headers]));
  return reply;
};

t.test('the search finds a secret in every encoding', async (t) => {
  const secret = VARIABLES.DESK_PASSWORD;
  for (const text of [secret, JSON.stringify({ secret }), `?token=${encodeURIComponent(secret)}`, btoa(`${secret}:`)]) {
    t.strictSame([...new Set(canaries.in(text))], [secret]);
  }
});

t.test('S-28 no route returns a credential, however it was sent', async (t) => {
  const everywhere = (secret: string): readonly Pair[] => [
    ['authorization', `Bearer ${secret}`],
    ['x-api-key', secret],
    ['cookie', `token=${secret}`],
    ['proxy-authorization', `Basic ${Buffer.from(`api:${secret}`).toString('base64')}`],
    ['sec-websocket-protocol', `bearer.${secret}`],
  ];
  for (const secret of Object.values(credentials)) {
    for (const call of everyRoute(server)) {
      const path = `${call.path}?api_key=${encodeURIComponent(secret)}`;
      for (const headers of [
        everywhere(secret),
        everywhere(secret).slice(1),
        [...everywhere(secret), ['authorization', `Bearer ${secret}`] as const],
      ]) {
        const { status, text, headers: answered } = await sendRaw(server, { ...call, path }, headers);
        t.ok(status < 500, `${call.route}: ${status}`);
        answers.push(text, JSON.stringify(answered));
      }
    }
  }
  for (const [what, secret] of Object.entries(valid)) t.equal((await chat(saying('Hi'), bearer(secret))).status, 200, what);
  t.strictSame(canaries.in(answers.join('\n')), []);
});

t.test('S-28 no error response contains a secret', async (t) => {
  for (const [body, status] of [
    ['{', 400],
    [{}, 400],
    [saying('Hi', { n: 2 }), 400],
    [saying('Hi', { session_id: 'x'.repeat(600) }), 400],
    [saying('Hi', { session_id: `conv_${'0'.repeat(40)}` }), 404],
    [saying('x'.repeat(21 * 1024 * 1024)), 413],
  ] as const) {
    t.equal((await chat(body)).status, status);
  }
});

t.test('S-28 no secret leaks from a model server that fails and repeats its request', async (t) => {
  const forms = [
    (message: string) => ({ error: { message, code: message } }),
    (message: string) => message,
    (message: string) => ({ detail: [{ msg: message }] }),
  ];
  const refusals = [400, 401, 403, 404, 429, 500, 503].flatMap((status) =>
    forms.map(
      (form) =>
        (echo: string): Script => ({ status, body: form(echo), retryAfter: 0, headers: { 'x-echo': echo } }),
    ),
  );
  const failures: readonly ((echo: string) => Script)[] = [
    ...refusals,
    (echo) => ({ raw: [`data: ${JSON.stringify({ error: { message: echo } })}\n\n`] }),
    (echo) => ({ raw: ['data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n', `data: ${echo}\n\n`] }),
    () => ({ hangUp: true }),
  ];
  server.models.respond(({ headers, body }) => {
    const echo = `Incorrect API key provided: ${headers.authorization} (${headers['x-key']}) for ${server.models.url}`;
    return failures[Number(body.messages.at(-1)?.content)]?.(echo) ?? {};
  });
  // At once, for some of these are asked again after a pause.
  const asked = failures.flatMap((_, at) => [false, true].map((stream) => chat(saying(`${at}`, { stream }))));
  for (const { status, text } of await Promise.all(asked)) t.ok(status === 502 || text.includes('"error"'), String(status));
});

t.test('S-28 no secret leaks from a timeout, a failing tool or a crashing plugin', async (t) => {
  server.models.respond({ before: new Promise(() => {}) });
  t.equal((await chat(saying('Hi', { model: 'hurried', session_id: 'late' }))).status, 502);

  server.models.respond(({ body }) => ({ text: JSON.stringify(body.messages) }));
  for (const name of ['desk', 'process__login']) {
    server.models.enqueue({ toolCalls: [{ name, arguments: {} }] });
    const reply = await chat(saying('Hi', { session_id: 'tools' }));
    t.equal(reply.status, 200);
    t.match(reply.text, /the desk is closed|no login for \[redacted\]/, 'the tool result');
  }
  for (const stream of [false, true]) {
    const reply = await chat(saying('crash', { stream, session_id: 'crashed' }));
    t.equal(reply.status, 502);
    t.match(JSON.parse(reply.text), { error: { message: /^\S[^:]*$/, type: 'svc_error' } });
  }
  server.models.respond(({ body }) => ({ text: String(body.messages.at(-1)?.content) }));
});

t.test('S-28 after all these requests no response, log line, file or diagnostics event contains a secret', async (t) => {
  t.strictSame(canaries.in(answers.join('\n')), [], 'answers');
  t.strictSame(canaries.in(writtenFiles(server)), [], 'files');
  t.ok(published.length > 100);
  t.strictSame(canaries.in(published.join('\n')), [], 'diagnostics');
  const { MODEL_KEY: _, ...others } = VARIABLES;
  const asked = JSON.stringify(server.models.requests.map(({ headers, body }) => ({ headers, body })));
  t.strictSame(new Canaries([...Object.values(others), ...Object.values(credentials)]).in(asked), [], 'model requests');
  t.match(asked, `Bearer ${VARIABLES.MODEL_KEY}`);

  await server.started.server.stop();
  const log = server.started.logs;
  t.ok(server.accessLog.length > 100);
  const levels = new Set(log.map(({ level }) => level));
  for (const level of ['debug', 'info', 'error']) t.ok(levels.has(level), `there are lines of the level ${level}`);
  t.strictSame(canaries.in(JSON.stringify(log)), [], 'log');
  t.match(JSON.stringify(log), /cannot use \[redacted\]/, 'the crash is logged');
  t.strictSame(canaries.in(writtenFiles(server)), [], 'files of a server that has stopped');
});

t.test('S-28 the output of the program contains no secret', async (t) => {
  const cwd = t.testdir({ 'plugboard.yaml': yaml, ...files });
  for (const args of [['check'], ['plugins', '--json'], ['schema'], ['token', 'list', '--json']]) {
    const { code, stdout, stderr } = await run(t, args, { cwd, env });
    t.equal(code, 0, stderr);
    t.strictSame(canaries.in(stdout + stderr), [], args.join(' '));
  }
  const broken = t.testdir({
    'plugboard.yaml': yaml
      .replaceAll('address:', 'adress:')
      .replace('secret: "', 'secret: 7${"')
      .replace('expires: 2020', 'expires: x2020'),
    ...files,
  });
  for (const command of ['check', 'start']) {
    const { code, stdout, stderr } = await run(t, [command], { cwd: broken, env });
    t.equal(code, 78);
    t.strictSame(canaries.in(stdout + stderr), [], command);
  }
});
