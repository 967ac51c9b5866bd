/** A whole server takes over changes of its file while it runs (configuration.md, rule 8). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { witness } from '../../plugins/tool-mcp/test/witness.js';
import { answerOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const MCP_SERVER = fileURLToPath(new URL('../../plugins/tool-mcp/test/fixtures/server.mjs', import.meta.url));

const MODELS = 'models:\n  fast: { use: openai, baseUrl: "$' + '{MODEL_URL}", model: big-1, apiKey: "$' + '{MODEL_KEY}" }\n';
const agents = (text: string) => `agents:\n${text}`;
const ASSISTANT = '  assistant: { model: fast, system: You are the first. }\n';

/** Rewrites the file of a server, and reloads it. */
async function reload(app: TestServer, yaml: string) {
  await writeFile(join(app.started.folder, 'plugboard.yaml'), yaml);
  return app.started.server.reload();
}

const system = (app: TestServer) => (app.asked.messages as { role: string; content: string }[])[0]?.content;

t.test('rule 8: agents are added, changed and removed', async (t) => {
  const base = TRANSPORTS + MODELS;
  const app = await TestServer.start(t, base + agents(ASSISTANT));
  await app.chat(saying('hello'));
  t.equal(system(app), 'You are the first.');

  const changed = '  assistant: { model: fast, system: You are the second. }\n  other: { model: fast, system: You are new. }\n';
  t.equal((await reload(app, base + agents(changed))).refused, undefined);
  await app.chat(saying('hello'));
  t.equal(system(app), 'You are the second.');
  await app.chat(saying('hello', { model: 'other' }));
  t.equal(system(app), 'You are new.');
  t.match((await app.get('/v1/models')).body, { data: [{ id: 'assistant' }, { id: 'other' }, { id: 'fast' }] });

  await reload(app, base + agents(ASSISTANT));
  t.equal((await app.chat(saying('hello', { model: 'other' }))).status, 400, 'a removed agent is unknown');
  t.match((await app.get('/health')).body, { ready: true });
});

t.test('rule 8: a turn that runs keeps its prompt, and the next turn of its session has the new one', async (t) => {
  const base = TRANSPORTS + MODELS;
  const tools = 'tools: { clock: {} }\n';
  const app = await TestServer.start(
    t,
    base + tools + agents('  assistant: { model: fast, system: You are the first., tools: [clock] }\n'),
  );
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Hel', gate.promise, 'lo'], toolCalls: [{ name: 'clock', arguments: {} }] }, { text: 'noon' });
  const stream = await app.open(saying('hello', { session_id: 's' }));
  await stream.until('Hel');

  const next = '  assistant: { model: fast, system: You are the second. }\n';
  t.equal((await reload(app, base + agents(next))).refused, undefined);
  gate.resolve();
  const { text } = await stream.end();
  t.match(text, /^Hello\s*noon$/, 'its tool still ran');
  t.equal(system(app), 'You are the first.');
  t.match(app.asked, { tools: [{ function: { name: 'clock' } }] });

  await app.chat(saying('and now?', { session_id: 's' }));
  t.equal(system(app), 'You are the second.');
  t.equal(app.asked.tools, undefined);
  t.ok(JSON.stringify(app.asked.messages).includes('noon'), 'the session continues');
});

t.test('rule 8: a turn whose agent was removed runs to its end', async (t) => {
  const base = TRANSPORTS + MODELS;
  const app = await TestServer.start(t, base + agents(`${ASSISTANT}  other: { model: fast }\n`));
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  const stream = await app.open(saying('go', { model: 'other' }));
  await stream.until('one');
  await reload(app, base + agents(ASSISTANT));
  gate.resolve();
  t.equal((await stream.end()).text, 'one two');
});

t.test('rule 8: a turn that waits in its session begins with the configuration of its beginning', async (t) => {
  const base = TRANSPORTS + MODELS;
  const app = await TestServer.start(t, base + agents(`${ASSISTANT}  other: { model: fast }\n`));
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise] }, { text: ['x', gate.promise] });
  const [first, gone] = [
    await app.open(saying('a', { session_id: 's' })),
    await app.open(saying('a', { model: 'other', session_id: 's' })),
  ];
  await first.until('one');
  await gone.until('x');
  const waits = [app.chat(saying('b', { session_id: 's' })), app.chat(saying('b', { model: 'other', session_id: 's' }))] as const;
  await app.chat(saying('c')); // whose whole way begins after theirs: both wait
  await reload(app, base + agents('  assistant: { model: fast, system: You are the second. }\n'));
  gate.resolve();
  await Promise.all([first.end(), gone.end()]);
  t.equal(answerOf(await waits[0]), 'b');
  t.equal(system(app), 'You are the second.');
  t.match(await waits[1], { status: 400, body: { error: { param: 'model', message: /'other' is no longer available/ } } });
});

t.test('rule 8: the key of a model is replaced; the old connection is closed when its last turn has ended', async (t) => {
  const yaml = (key: string) =>
    `${TRANSPORTS}models:\n  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: ${key} }\n${agents(ASSISTANT)}`;
  const app = await TestServer.start(t, yaml('sk-first-key-of-the-test'));
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  const stream = await app.open(saying('go'));
  await stream.until('one');

  const { changes } = await reload(app, yaml('sk-second-key-of-the-test'));
  t.match(changes, [{ kind: 'changed', path: ['models', 'fast', 'apiKey'] }]);
  await app.chat(saying('again'));
  const keys = app.models.requests.map(({ headers }) => headers.authorization);
  t.strictSame(keys, ['Bearer sk-first-key-of-the-test', 'Bearer sk-second-key-of-the-test']);
  t.strictSame(app.started.server.leaving, ['models.fast']);
  gate.resolve();
  t.equal((await stream.end()).text, 'one two');
  await eventually(() => app.started.server.leaving.length === 0);
  t.notMatch(JSON.stringify(app.started.logs), /sk-(first|second)/);
});

t.test('rule 8: a tool is added and removed, and its process ends when the last turn has ended', async (t) => {
  const watch = await witness(t);
  const base = TRANSPORTS + MODELS;
  const app = await TestServer.start(t, base + agents(ASSISTANT));
  const args = JSON.stringify([MCP_SERVER, '--witness', String(watch.port)]);
  const tools = `tools:\n  x: { use: mcp, command: ${JSON.stringify(process.execPath)}, args: ${args} }\n`;
  const equipped = '  assistant: { model: fast, system: You are the first., tools: [x] }\n';
  t.equal((await reload(app, base + tools + agents(equipped))).refused, undefined);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue(
    { text: ['go', gate.promise], toolCalls: [{ name: 'x__change', arguments: { add: ['it'] } }] },
    { text: 'done' },
  );
  const stream = await app.open(saying('go'));
  await stream.until('go');
  t.match(JSON.stringify(app.asked.tools), 'x__change');
  const { gone } = await watch.next();
  let ended = false;
  void gone.then(() => {
    ended = true;
  });

  t.equal((await reload(app, base + agents(ASSISTANT))).refused, undefined);
  t.notOk(ended, 'a running turn may still call it');
  gate.resolve();
  t.match((await stream.end()).text, /^go\s*done$/);
  const result = (app.asked.messages as { role: string; content: string }[]).find(({ role }) => role === 'tool');
  t.notMatch(result?.content, /not running|stopped/);
  await gone;
  await app.chat(saying('hello'));
  t.equal(app.asked.tools, undefined);
});

t.test('rule 8: tokens of the file come and go, and a project appears', async (t) => {
  const base = TRANSPORTS + MODELS;
  const auth = (tokens: string) => `auth: { bearer: { tokens: [${tokens}] } }\n`;
  const [first, second] = ['token-of-the-first-caller', 'token-of-the-second-caller'];
  const one = `{ name: one, project: default, token: ${first} }`;
  const app = await TestServer.start(t, base + auth(one) + agents(ASSISTANT));
  const as = (token: string) => app.chat(saying('hello'), { authorization: `Bearer ${token}` });
  t.equal((await as(first)).status, 200);
  t.equal((await as(second)).status, 401);
  const next = `projects: { acme: {} }\n${auth(`{ name: two, project: acme, token: ${second} }`)}`;
  const acme = '  assistant: { model: fast, project: acme }\n';
  t.equal((await reload(app, base + next + agents(acme))).refused, undefined);
  t.equal((await as(first)).status, 401);
  t.equal((await as(second)).status, 200);
  t.notMatch(JSON.stringify(app.started.logs), /token-of-the/);
});

t.test('rule 8: an open server is closed, and opened again, with a warning', async (t) => {
  const base = TRANSPORTS + MODELS + agents(ASSISTANT);
  const app = await TestServer.start(t, base);
  await reload(app, `${base}auth: { bearer: {} }\n`);
  t.equal((await app.chat(saying('hello'))).status, 401);
  const before = app.started.logs.length;
  await reload(app, base);
  t.equal((await app.chat(saying('hello'))).status, 200);
  t.match(app.started.logs.slice(before), [{ level: 'warn', msg: /^the server is open/ }, { event: 'open_start' }]);
});

t.test('rule 8: routes, limits of bodies and origins change; open connections stay', async (t) => {
  const rest = MODELS + agents(ASSISTANT);
  const app = await TestServer.start(t, TRANSPORTS + rest);
  t.equal((await app.get('/v1/conversations?agent=assistant')).status, 404);
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['one', gate.promise, ' two'] });
  const stream = await app.open(saying('go'));
  await stream.until('one');

  const next = TRANSPORTS.replace('port: 0', 'port: 0, bodyLimit: 1kb, origins: ["https://app.example.org"]');
  t.not(next, TRANSPORTS);
  t.equal((await reload(app, `${next}  conversations: {}\n${rest}`)).refused, undefined);
  t.equal((await app.get('/v1/conversations?agent=assistant')).status, 200);
  t.equal((await app.chat(saying('x'.repeat(2000)))).status, 413);
  const reply = await app.get('/v1/models', { origin: 'https://app.example.org' });
  t.equal(reply.headers.get('access-control-allow-origin'), 'https://app.example.org');
  gate.resolve();
  t.equal((await stream.end()).text, 'one two');

  await reload(app, TRANSPORTS + rest);
  t.equal((await app.get('/v1/conversations?agent=assistant')).status, 404);
  t.equal((await app.chat(saying('x'.repeat(2000)))).status, 200);
});

t.test('rule 8: the limit of running turns changes, and waiting turns begin', async (t) => {
  const base = TRANSPORTS + MODELS + agents(ASSISTANT);
  const app = await TestServer.start(t, `${base}limits: { runningTurns: 1 }\n`);
  const gate = Promise.withResolvers<void>();
  app.models.respond(() => ({ text: ['one', gate.promise] }));
  const first = await app.open(saying('a'));
  await first.until('one');
  const second = app.open(saying('b'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(app.models.requests.length, 1);
  await reload(app, `${base}limits: { runningTurns: 2 }\n`);
  await eventually(() => app.models.requests.length === 2);
  gate.resolve();
  await Promise.all([first.end(), second.then((stream) => stream.end())]);
});

t.test('rule 8: the level of the log changes, for entries that stay, too', async (t) => {
  const base = TRANSPORTS + MODELS + agents(ASSISTANT);
  const app = await TestServer.start(t, `${base}log: { level: warn }\n`);
  await app.get('/health');
  await app.chat(saying('hello'));
  t.equal(app.accessLog.length, 0);
  t.match(await reload(app, `${base}log: { level: info }\n`), { changes: [{ path: ['log', 'level'] }] });
  await app.chat(saying('hello'));
  await eventually(() => app.accessLog.length === 1);
});

t.test('rule 8: a changed prompt file is a change', async (t) => {
  const yaml = `${TRANSPORTS}${MODELS}${agents('  assistant: { model: fast, system: { file: ./prompt.md } }\n')}`;
  const app = await TestServer.start(t, yaml, { files: { 'prompt.md': 'You are the first.' } });
  await writeFile(join(app.started.folder, 'prompt.md'), 'You are the second.\n');
  t.match(await app.started.server.reload(), { changes: [{ file: join(app.started.folder, 'prompt.md') }] });
  await app.chat(saying('hello'));
  t.equal(system(app), 'You are the second.');
});

t.test('rule 8: a removed transport ends its requests, and then stops', async (t) => {
  const plugin = `
    import { definePlugin } from '@plugboard/kernel';
    import { HttpRoutes } from '@plugboard/transport-http';
    export default definePlugin({
      name: 'slow', apiVersion: 1, summary: 'Answers late', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        const gate = Promise.withResolvers();
        let stopped = false;
        const route = { access: 'public', body: 'none', startsWork: false };
        ctx.contribute(HttpRoutes, {
          ...route, method: 'GET', path: '/slow',
          handle: () => (globalThis.slowArrived(), gate.promise.then(() => ({ status: 200, body: String(stopped) }))),
        }, 'slow');
        ctx.contribute(HttpRoutes, { ...route, method: 'GET', path: '/open', handle: () => (gate.resolve(), { status: 200, body: '' }) }, 'open');
        globalThis.openGate = gate.resolve;
        return { stop: () => { stopped = true; } };
      },
    });
  `;
  const base = `${TRANSPORTS}  slow: { use: ./slow.mjs }\n${MODELS}${agents(ASSISTANT)}`;
  const app = await TestServer.start(t, base, { files: { 'slow.mjs': plugin } });
  const arrived = Promise.withResolvers<void>();
  Object.assign(globalThis, { slowArrived: arrived.resolve });
  const reply = app.get('/slow');
  await arrived.promise;
  await reload(app, TRANSPORTS + MODELS + agents(ASSISTANT));
  t.equal((await app.get('/open')).status, 404);
  t.strictSame(app.started.server.leaving, ['transports.slow']);
  (globalThis as { openGate?: () => void }).openGate?.();
  t.match(await reply, { status: 200, text: 'false' }, 'the plugin still worked');
  await eventually(() => app.started.server.leaving.length === 0);
});
