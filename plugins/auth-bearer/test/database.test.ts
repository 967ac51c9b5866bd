import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandArguments, type CommandFamily, Commands } from '@plugboard/kernel/contracts';
import { eventually, ManualClock, type StartedServer, startServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { run as runProgram } from '../../cli/test/plugboard.js';
import { realPostgres } from '../../store-postgres/test/real-postgres.js';
import { fileOf } from './token-fixtures.js';

const YAML = `
transports: { http: { port: 0 }, models: {} }
auth: { bearer: { tokens: [ { name: ops, project: default, token: hand-written-secret } ] } }
sessions: { use: postgres, url: "\${DATABASE_URL}", lease: 5m }
models: { fast: { use: demo } }
agents: { mine: { model: fast, project: acme } }
projects: { acme: {} }
`;

/** Runs `plugboard token` of a server. @returns what it prints. */
async function run(
  { server }: StartedServer,
  action: string,
  options: Readonly<Record<string, string>>,
  ...positionals: string[]
) {
  const family = server.extensions(Commands).get('token') as CommandFamily;
  let out = '';
  const args: CommandArguments = { positionals, text: (option) => options[option], has: (option) => option in options };
  const print = (text: string) => {
    out += text;
  };
  await family.actions[action]?.run(args, { input: [] as never, print, note: () => undefined });
  return out;
}

const statusOf = async ({ url }: StartedServer, secret: string) => {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
  return response.status;
};

/** Two servers over one database. */
async function twoServers(t: Test) {
  const postgres = await realPostgres();
  const env = { DATABASE_URL: postgres.url(await postgres.createDatabase()) };
  const clock = new ManualClock();
  const start = async () => {
    const started = await startServer(YAML, { clock, env });
    t.teardown(() => started.stop());
    return started;
  };
  const servers = [await start(), await start()] as const;
  /** Lets the servers look for changes, until all of them answer so. */
  const answers = (secret: string, status: number) =>
    eventually(async () => {
      clock.advance(2_000);
      return (await Promise.all(servers.map((one) => statusOf(one, secret)))).every((found) => found === status);
    });
  return { servers, clock, answers };
}

t.test('PG-23 an issued token is known and refused on every server, and no command loses one', async (t) => {
  const { servers, clock, answers } = await twoServers(t);
  const [one, two] = servers;
  const names = ['a', 'b', 'c', 'd'];
  const create = (name: string, n: number) => run(n % 2 ? one : two, 'create', { project: 'acme', name });
  const secrets = await Promise.all(names.map(create));
  for (const secret of secrets) await answers(secret, 200);
  const list = async () => JSON.parse(await run(one, 'list', { json: '', project: 'acme' })).tokens;
  t.match((await list()).map(({ name }: { name: string }) => name).sort(), names);
  await run(two, 'revoke', {}, 'a');
  await answers(secrets[0] ?? '', 401);
  await t.rejects(run(one, 'revoke', {}, 'a'), { message: /there is no active token "a"/ });
  clock.advance(60_000);
  await eventually(async () => (await list()).every(({ lastUsedAt }: { lastUsedAt?: string }) => lastUsedAt));
  t.match((await list())[0], { source: 'database' });
  for (const { folder } of servers) t.notOk(existsSync(join(folder, 'data')), 'nothing is in a file');
});

t.test('PG-23 an ephemeral token works once, on any server', async (t) => {
  const { servers } = await twoServers(t);
  const [one, two] = servers;
  const issue = async () => {
    const response = await fetch(`${one.url}/v1/ephemeral_tokens`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer hand-written-secret' },
      body: '{}',
    });
    return { status: response.status, value: ((await response.json()) as { value: string }).value };
  };
  const first = await issue();
  t.equal(await statusOf(two, first.value), 200);
  for (const server of servers) t.equal(await statusOf(server, first.value), 401, 'it was used');
  const second = await issue();
  const statuses = await Promise.all([...servers, ...servers].map((server) => statusOf(server, second.value)));
  t.strictSame(statuses.toSorted(), [200, 401, 401, 401], 'of several at once, one');
  for (let n = 0; n < 100; n++) t.equal((await issue()).status, 200);
  t.equal((await issue()).status, 429);
});

t.test('PG-23 a tokens file that is not used is named when the server starts', async (t) => {
  const postgres = await realPostgres();
  const folder = t.testdir({ data: { 'tokens.json': fileOf() } });
  const path = join(folder, 'data/tokens.json');
  chmodSync(path, 0o600);
  const env = { DATABASE_URL: postgres.url(await postgres.createDatabase()) };
  const { logs, stop } = await startServer(YAML, { env, folder });
  t.teardown(stop);
  const unused = logs.filter(({ msg }) => String(msg).startsWith('issued tokens are in the database'));
  t.match(unused, [
    { level: 'warn', msg: `issued tokens are in the database, and not in ${path}: write tokensFile to use the file` },
  ]);
});

t.test('PG-23 plugboard token works wherever the file is', async (t) => {
  const postgres = await realPostgres();
  const cwd = t.testdir({ 'plugboard.yaml': YAML });
  const env = { DATABASE_URL: postgres.url(await postgres.createDatabase()) };
  const made = await runProgram(t, ['token', 'create', '--project', 'acme', '--name', 'ci'], { cwd, env });
  t.match(made, { code: 0, stdout: /^svcp_\w{38}\n$/, stderr: /^This is token tok_/ });
  const listed = await runProgram(t, ['token', 'list'], { cwd, env });
  t.match(listed, { code: 0, stdout: / ci +svcp_.* active /, stderr: '' });
  const unset = await runProgram(t, ['token', 'create', '--project', 'acme', '--name', 'ci'], { cwd });
  t.match(unset, { code: 1, stdout: '', stderr: /the session store of the file has a mistake, and may have the tokens/ });
  t.strictSame(readdirSync(cwd), ['plugboard.yaml']);
});
