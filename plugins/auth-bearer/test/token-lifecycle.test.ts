import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { Plugboard, run } from '../../cli/test/plugboard.js';

const YAML = `
transports: { http: { port: 0 }, models: {} }
auth: { bearer: { tokensFile: ./secrets/tokens.json } }
models: { demo: {} }
agents: { mine: { model: demo, project: acme }, of-variable: { model: demo, project: "\${NOT_SET:-acme}" } }
projects: { acme: {} }
`;

function distribution(t: Test, yaml = YAML) {
  const cwd = t.testdir({ 'plugboard.yaml': yaml });
  return { cwd, token: (...args: readonly string[]) => run(t, ['token', ...args], { cwd }) };
}

t.test('a token is created, used, rotated and revoked while the server runs', async (t) => {
  const { cwd, token } = distribution(t);
  const server = new Plugboard(t, ['start'], { cwd });
  await server.prints('\n  address ');
  const address = /^ {2}address +(\S+)$/m.exec(server.stdout)?.[1] ?? '';
  t.match(server.stdout, /^ {2}access +with a credential \(bearer\)$/m);
  const status = async (secret: string) =>
    (await fetch(`${address}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })).status;

  const made = await token('create', '--project', 'acme', '--name', 'ci', '--expires', '90d');
  const secret = made.stdout.trimEnd();
  t.match(made, {
    code: 0,
    stdout: /^svcp_[0-9A-Za-z]{38}\n$/,
    stderr: /^This is token tok_\w{16} \("ci" of project acme\)\. It is shown only once/,
  });
  await eventually(async () => (await status(secret)) === 200);

  server.kill('SIGHUP');
  t.match(await server.logs('entries read their own files again'), { log: 'audit', event: 'configuration_reloaded' });

  const rotated = (await token('rotate', 'ci', '--grace', '0s')).stdout.trimEnd();
  await eventually(async () => (await status(rotated)) === 200 && (await status(secret)) === 401);
  t.match(await token('revoke', 'ci'), { code: 0, stdout: /^token tok_\w+ \("ci" of project acme\) was revoked at/ });
  await eventually(async () => (await status(rotated)) === 401);

  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
  const { tokens } = JSON.parse((await token('list', '--json')).stdout);
  t.match(tokens, [
    { name: 'ci', status: 'expired', lastUsedAt: /^20/ },
    { name: 'ci', status: 'revoked', lastUsedAt: /^20/ },
  ]);
  t.match(
    server.log.filter(({ log }) => log === 'audit').map(({ event }) => event),
    ['token_created', 'token_first_used', 'configuration_reloaded', 'token_rotated', 'token_first_used', 'token_revoked'],
  );
  for (const known of [secret, rotated]) t.notMatch(server.stdout + server.stderr + JSON.stringify(tokens), known);
});

t.test('S-12 a revoked token is refused at once after SIGHUP', async (t) => {
  const { cwd, token } = distribution(t);
  const secret = (await token('create', '--project', 'acme', '--name', 'ci')).stdout.trimEnd();
  const server = new Plugboard(t, ['start'], { cwd });
  await server.prints('\n  address ');
  const address = /^ {2}address +(\S+)$/m.exec(server.stdout)?.[1] ?? '';
  await token('revoke', 'ci');
  server.kill('SIGHUP');
  await server.logs('entries read their own files again');
  t.equal((await fetch(`${address}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })).status, 401);
  server.kill('SIGTERM');
  t.equal(await server.exit(), 0);
});

t.test('invalid arguments exit with 2 and a message, failed operations with 1', async (t) => {
  const { token } = distribution(t);
  for (const [args, code, message] of [
    [[], 2, 'plugboard token needs an action as its first argument: create, list, revoke, rotate or hash'],
    [['crate'], 2, 'plugboard token has no action "crate", did you mean create?'],
    [['create', '--name', 'ci'], 2, 'plugboard token create needs --project P'],
    [['create', '--project', 'acme'], 2, 'plugboard token create needs --name N'],
    [['revoke'], 2, 'plugboard token revoke needs ID|NAME'],
    [
      ['create', '--project', 'acme', '--name', 'ci', '--expires', 'soon'],
      2,
      '--expires must be a duration such as 90d or a date',
    ],
    [
      ['create', '--project', 'default', '--name', 'ci', '--agents', 'of-variable'],
      1,
      'the configuration has no agent "of-variable" in the project default: the agent belongs to another project\n',
    ],
  ] as const) {
    t.match(await token(...args), { code, stdout: '', stderr: `plugboard: ${message}` }, args.join(' '));
  }
});

t.test('hash reads a token on standard input', async (t) => {
  const { cwd } = distribution(t);
  t.strictSame(await run(t, ['token', 'hash'], { cwd, input: 'a-secret-of-mine\n' }), {
    code: 0,
    stdout: '46dc5676065b983fb6ffc4bc19885c32a468ef09b93365429f0fab788bd4a2f8\n',
    stderr: '',
  });
});

t.test('several entries that issue tokens require --entry', async (t) => {
  const { cwd, token } = distribution(
    t,
    YAML.replace('auth: {', 'auth: { second: { use: bearer, tokensFile: ./secrets/second.json },'),
  );
  const create = ['create', '--project', 'acme', '--name', 'ci'];
  t.match(await token(...create), {
    code: 2,
    stderr: /auth\.second and auth\.bearer both have the command "token"; choose one, for example --entry/,
  });
  t.match(await token(...create, '--entry', 'auth.second'), { code: 0, stdout: /^svcp_/ });
  t.match(await token('list', '--entry', 'auth.bearer'), { code: 0, stdout: /^There are no tokens/ });
  t.match(await token('list', '--entry', 'auth.second', '-c', join(cwd, 'plugboard.yaml')), { code: 0, stdout: / ci / });
});

t.test('concurrent commands lose no token', async (t) => {
  const { token } = distribution(t);
  const names = ['a', 'b', 'c', 'd'];
  const made = await Promise.all(names.map((name) => token('create', '--project', 'acme', '--name', name)));
  t.same(
    made.map(({ code }) => code),
    [0, 0, 0, 0],
  );
  const { tokens } = JSON.parse((await token('list', '--json')).stdout) as { tokens: { name: string }[] };
  t.same(tokens.map(({ name }) => name).toSorted(), names);
});
