import { readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { type CommandArguments, type CommandFamily, Commands } from '@plugboard/kernel/contracts';
import { eventually, ManualClock, type StartedServer, type StartServerOptions, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { writeAtomically } from '../src/files/atomic-write.js';
import { lastUseFile } from '../src/files/last-use.js';
import { fileOf, record, TOKEN } from './token-fixtures.js';

const YAML = `
transports: { http: { port: 0 }, models: {} }
auth: { bearer: { tokens: [ { name: ops, project: default, token: "\${OPS_TOKEN}" } ] } }
models: { fast: { use: demo } }
agents: { mine: { model: fast, project: acme }, other: { model: fast } }
projects: { acme: {} }
`;
const OPS_TOKEN = 'canary-token-of-the-operators';

/** A whole server with a manual clock. `run` runs `plugboard token`. */
async function serve(t: Test, { files = {}, ...options }: StartServerOptions = {}) {
  const clock = new ManualClock();
  const server = await startServer(YAML, { clock, env: { OPS_TOKEN }, files, ...options });
  t.teardown(() => server.stop());
  const path = join(server.folder, 'data/tokens.json');
  const family = server.server.extensions(Commands).get('token') as CommandFamily;
  const run = async (action: string, options: Readonly<Record<string, string>>, ...positionals: string[]) => {
    let out = '';
    const args: CommandArguments = { positionals, text: (option) => options[option], has: (option) => option in options };
    const print = (text: string) => {
      out += text;
    };
    const terminal = { input: [] as never, print, note: () => undefined };
    await family.actions[action]?.run(args, terminal);
    return out;
  };
  return { server, clock, path, run, status: (...tokens: readonly string[]) => statusOf(server, ...tokens) };
}

/**
 * Sends a request with these Authorization headers and returns the response without what differs
 * each time.
 */
async function ask({ url }: StartedServer, ...authorization: readonly string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status?: number | undefined; headers: object; body: string }>();
  const asked = request(
    `${url}/v1/models`,
    { headers: ['host', 'x', ...authorization.flatMap((value) => ['authorization', value])] },
    (response) => {
      let body = '';
      response.on('data', (data) => {
        body += data;
      });
      response.on('end', () => {
        const { 'x-request-id': id, date, ...headers } = response.headers;
        resolve({ status: response.statusCode, headers, body });
      });
    },
  );
  asked.on('error', reject).end();
  return promise;
}

async function statusOf(server: StartedServer, ...tokens: readonly string[]) {
  return (await ask(server, ...tokens.map((token) => `Bearer ${token}`))).status;
}

/**
 * Advances the clock by up to ten seconds until the condition holds. Waits for each timer's work.
 */
async function withinTenSeconds(clock: ManualClock, condition: () => Promise<boolean>): Promise<boolean> {
  for (let second = 0; second < 10; second++) {
    const { pending } = clock;
    clock.advance(1_000);
    await eventually(() => clock.pending >= pending);
    if (await condition()) return true;
  }
  return false;
}

t.test('S-12 accepts a new token and refuses a revoked one within ten seconds, without a restart', async (t) => {
  const { run, status, clock } = await serve(t);
  const token = await run('create', { project: 'acme', name: 'ci' });
  t.ok(await withinTenSeconds(clock, async () => (await status(token)) === 200));
  await run('revoke', {}, 'ci');
  t.ok(await withinTenSeconds(clock, async () => (await status(token)) === 401));
});

t.test('limits a token to the agents of its project', async (t) => {
  const { server, run } = await serve(t);
  const token = await run('create', { project: 'acme', name: 'ci' });
  await server.server.reload();
  const names = async (token: string) => {
    const { data } = JSON.parse((await ask(server, `Bearer ${token}`)).body);
    return data.map(({ id }: { id: string }) => id);
  };
  t.same(await names(token), ['mine']);
  t.same(await names(OPS_TOKEN), ['mine', 'other', 'fast']);
});

t.test('refuses an expired token, and a rotated one after its grace period', async (t) => {
  const { server, run, status, clock } = await serve(t);
  const old = await run('create', { project: 'acme', name: 'ci', expires: '2h' });
  const renewed = await run('rotate', { grace: '1h' }, 'ci');
  await server.server.reload();
  t.same([await status(old), await status(renewed)], [200, 200]);
  clock.advance(3_600_000);
  t.same([await status(old), await status(renewed)], [401, 200]);
  clock.advance(3_600_000);
  t.same([await status(old), await status(renewed)], [401, 401]);
});

t.test('C-141 answers every invalid credential alike', async (t) => {
  const { server, run, clock } = await serve(t);
  const good = await run('create', { project: 'acme', name: 'good' });
  const expired = await run('create', { project: 'acme', name: 'expired', expires: '1s' });
  const revoked = await run('create', { project: 'acme', name: 'revoked' });
  await run('revoke', {}, 'revoked');
  await server.server.reload();
  clock.advance(1_000);
  const wrong: (readonly string[])[] = [
    [],
    [''],
    ['Bearer'],
    ['Bearer  '],
    [good],
    [`Basic ${good}`],
    [`Bearer ${good.slice(0, -1)}`],
    [`Bearer ${good}0`],
    [`Bearer ${TOKEN}`],
    [`Bearer ${TOKEN.slice(0, -1)}x`],
    [`Bearer ${revoked}`],
    [`Bearer ${expired}`],
    [`Bearer ${good},${good}`],
    [`Bearer ${good} ${good}`],
    [`Bearer ${'x'.repeat(513)}`],
    [`Bearer svcp_${'x'.repeat(5000)}`],
    [`Bearer ${'x'.repeat(9000)}`],
    [`Bearer ${good}`, `Bearer ${good}`],
    [`Bearer ${good}`, 'Basic eDp5'],
    ["Bearer ' OR '1'='1"],
    ['Bearer {"$ne":null}'],
    ['Bearer \u00e9\u00e8'],
  ];
  const first = await ask(server);
  t.match(first, { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  for (const authorization of wrong) t.same(await ask(server, ...authorization), first, authorization.join(' | ').slice(0, 60));
  t.equal(await statusOf(server, good), 200);
});

t.test('S-28 shows no token in a log, an answer or a file', async (t) => {
  const { server, run, path, clock } = await serve(t);
  const token = await run('create', { project: 'acme', name: 'ci' });
  await server.server.reload();
  const answers: unknown[] = [];
  for (const text of [token, OPS_TOKEN, token.slice(0, -1), `${OPS_TOKEN}-mistyped`, `${token.slice(0, -1)}-`]) {
    answers.push(await ask(server, `Bearer ${text}`));
  }
  clock.advance(60_000);
  await server.server.stop();
  const everything = JSON.stringify([answers, server.logs, readFileSync(path, 'utf8'), readFileSync(lastUseFile(path), 'utf8')]);
  for (const secret of [token, token.slice(5, 30), OPS_TOKEN, 'canary']) t.notMatch(everything, secret);
});

t.test('audits the first use of a token and records the last', async (t) => {
  const { server, run, status, clock, path } = await serve(t);
  const token = await run('create', { project: 'acme', name: 'ci' });
  await server.server.reload();
  await status(token);
  clock.advance(5_000);
  await status(token);
  await status(OPS_TOKEN);
  t.match(
    server.logs.filter(({ log }) => log === 'audit').map(({ event, token_name, project }) => [event, token_name, project]),
    [
      ['token_created', 'ci', 'acme'],
      ['token_first_used', 'ci', 'acme'],
      ['token_first_used', 'ops', 'default'],
    ],
  );
  await server.server.stop();
  const { tokens } = JSON.parse(await run('list', { json: '' }));
  t.match(tokens, [{ name: 'ops' }, { name: 'ci', lastUsedAt: '2026-01-01T00:00:05.000Z' }]);
  t.equal(statSync(lastUseFile(path)).mode & 0o777, 0o600);
});

t.test('S-13 does not start with a blank secret or a missing variable, and names it', async (t) => {
  for (const [env, message] of [
    [{ OPS_TOKEN: '' }, /auth\.bearer\.tokens\[0\]\.token: the secret is blank/],
    [{ OPS_TOKEN: '  ' }, /auth\.bearer\.tokens\[0\]\.token: the secret is blank/],
    [{}, /auth\.bearer\.tokens\[0\]\.token: the variable OPS_TOKEN is not set/],
  ] as const) {
    await t.rejects(startServer(YAML, { env }), { name: 'ConfigError', message });
  }
});

t.test('does not start with a tokens file that is accessible to other users', async (t) => {
  const files = { 'data/tokens.json': fileOf(record()) };
  await t.rejects(startServer(YAML, { env: { OPS_TOKEN }, files }), {
    name: 'ConfigError',
    message: /auth\.bearer\.tokensFile: the tokens file .* is accessible to other users \(mode 644\): run chmod 600/,
  });
});

t.test('refuses a token whose project was removed from the configuration', async (t) => {
  const { server, path, status } = await serve(t);
  await writeAtomically(path, fileOf(record({ project: 'gone' })));
  await server.server.reload();
  t.equal(await status(TOKEN), 401);
  await server.stop();
  t.match(
    server.logs.find(({ msg }) => msg === 'request'),
    {
      refused: 'the token tok_0000000000000001 belongs to the project "gone", which is not in the configuration',
    },
  );
});

t.test('refuses a revoked token that is also in the configuration', async (t) => {
  const { server, path, status } = await serve(t, { env: { OPS_TOKEN: TOKEN } });
  t.equal(await status(TOKEN), 200);
  await writeAtomically(path, fileOf(record({ revokedAt: '2026-01-01T00:00:00.000Z' })));
  await server.server.reload();
  t.equal(await status(TOKEN), 401);
});
