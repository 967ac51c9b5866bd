import { execFile, spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { parse } from 'yaml';
import { Shell } from '../support/shell.js';

/**
 * Installs the packed workspaces outside the repository, all tarballs in one installation, and uses
 * them there as a new user would: a distribution of `plugboard init`, and a plugin of each kind of
 * `plugboard create-plugin`.
 */

const root = join(import.meta.dirname, '../..');
const exec = promisify(execFile);
const KINDS = ['tool', 'model', 'store', 'auth', 'transport', 'channel', 'interceptor', 'tool-interceptor', 'observer'];

const folder = await mkdtemp(join(tmpdir(), 'plugboard-'));
t.teardown(() => rm(folder, { recursive: true, force: true }));
t.setTimeout(1_200_000);

const tarballs = join(folder, 'tarballs');
const site = join(folder, 'My Agents');
/** Without the settings of the test runner, and without accounts. */
const env = {
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^(HOME|NODE_EXTRA_CA_CERTS|(https?|no)_proxy)$/i.test(name)),
  ),
  PATH: `${join(site, 'node_modules/.bin')}:${process.env.PATH}`,
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_prefer_offline: 'true',
  npm_config_fetch_timeout: '20000',
};
const inSite = async (program: string, ...args: string[]) => exec(program, args, { cwd: site, env, maxBuffer: 1e8 });

await t.test('npm packs every workspace, with what it needs and nothing else', async (t) => {
  await mkdir(tarballs);
  await exec('npm', ['pack', '--workspaces', '--pack-destination', tarballs], { cwd: root, env, maxBuffer: 1e8 });
  const packed = globSync('*.tgz', { cwd: tarballs });
  const workspaces = globSync('{kernel,plugins/*}/package.json', { cwd: root });
  t.equal(packed.length, workspaces.length);
  const program = packed.find((name) => name.startsWith('plugboard-cli-')) ?? '';
  const { stdout } = await exec('tar', ['-tzf', join(tarballs, program)]);
  for (const path of [
    'dist/main.js',
    'bin/plugboard.js',
    'plugin-template/tool/package.json',
    'templates/distribution/Dockerfile',
  ]) {
    t.ok(stdout.includes(`package/${path}\n`), path);
  }
  t.notMatch(stdout, /package\/test\/|node_modules|\.env\n/);
  t.notOk(existsSync(join(root, 'plugins/cli/plugin-template')), 'the copy of the templates is removed');
});

await t.test('plugboard init writes a distribution, which npm installs from the tarballs', async (t) => {
  const { stdout } = await exec(process.execPath, [join(root, 'plugins/cli/bin/plugboard.js'), 'init', site], { env });
  t.match(stdout, 'created my-agents in');
  const files = ['.dockerignore', '.env.example', '.gitignore', 'Dockerfile', 'README.md', 'compose.yaml', 'my-agents.service'];
  const forSeveral = ['compose.replicas.yaml', 'kubernetes.yaml', 'nginx.conf'];
  for (const file of [...files, ...forSeveral]) t.ok(existsSync(join(site, file)), file);
  const manifest = JSON.parse(await readFile(join(site, 'package.json'), 'utf8'));
  for (const name of [...Object.keys(manifest.dependencies), '@plugboard/channel-kit', '@plugboard/testing']) {
    const [tarball] = globSync(`${name.replace('@', '').replace('/', '-')}-[0-9]*.tgz`, { cwd: tarballs });
    t.ok(tarball, `${name} is packed`);
    manifest.dependencies[name] = `file:${join(tarballs, tarball ?? '')}`;
  }
  await writeFile(join(site, 'package.json'), JSON.stringify(manifest));
  await inSite('npm', 'install');
  t.match((await inSite('plugboard', 'check')).stdout, 'plugboard.yaml is valid');
});

await t.test('the distribution uses the packages of Anthropic and Gemini while they are installed', async (t) => {
  const check = async () => {
    const keys = { ANTHROPIC_API_KEY: 'sk-ant-of-this-test', GEMINI_API_KEY: 'AIza-of-this-test' };
    return (await exec('plugboard', ['check'], { cwd: site, env: { ...env, ...keys } })).stdout;
  };
  t.match(await check(), /models +anthropic, gemini\n/);
  await rm(join(site, 'node_modules/@ai-sdk/google'), { recursive: true });
  t.match(
    await check(),
    /models +anthropic, gemini-compatible\n(.*\n)*.*models\.gemini: the package @ai-sdk\/google is not installed/,
  );
});

await t.test('the Dockerfile runs the server as another user, on the slim image of Node.js 24', async (t) => {
  const lines = (await readFile(join(site, 'Dockerfile'), 'utf8')).split('\n');
  t.equal(lines[0], 'FROM node:24-slim');
  t.ok(lines.includes('USER node'));
  t.match(lines.filter((line) => line !== '').at(-1), /^CMD \["node", "node_modules\/\.bin\/plugboard", "start"\]$/);
  const [, command = ''] = lines.find((line) => line.includes('CMD ["node", "-e"'))?.split('CMD ') ?? [];
  const [, ...args] = JSON.parse(command) as string[];
  const health = createServer((request, response) => void response.writeHead(request.url === '/readyz' ? 200 : 404).end());
  await new Promise<void>((resolve) => void health.listen(0, '127.0.0.1', resolve));
  const PORT = String((health.address() as AddressInfo).port);
  await exec(process.execPath, args, { env: { ...env, PORT } });
  await new Promise((resolve) => void health.close(resolve));
  await t.rejects(exec(process.execPath, args, { env: { ...env, PORT } }), { code: 1 }, 'unhealthy when nothing answers');
});

await t.test('the compose file sets what the container needs, also if .env sets it', async (t) => {
  const { services } = parse(await readFile(join(site, 'compose.yaml'), 'utf8'));
  t.match(services['my-agents'], {
    restart: 'unless-stopped',
    read_only: true,
    environment: { HOST: '0.0.0.0', PORT: '8080', DATA_DIR: '/data' },
    volumes: ['data:/data'],
  });
});

const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
await t.test('the systemd unit is valid', { skip: !hasSystemd }, async (t) => {
  const unit = await readFile(join(site, 'my-agents.service'), 'utf8');
  const installed = unit.replace('ExecStart=/srv/my-agents/node_modules/.bin/plugboard', 'ExecStart=/bin/true');
  t.not(installed, unit);
  const path = join(folder, 'my-agents.service');
  await writeFile(path, installed);
  t.strictSame(await exec('systemd-analyze', ['verify', path], { env }), { stdout: '', stderr: '' });
});

await t.test('the distribution runs, asks for a token, and keeps its sessions', async (t) => {
  const { stdout } = await inSite('plugboard', 'token', 'create', '--project', 'default', '--name', 'me');
  const [token = ''] = /svcp_\w+/.exec(stdout) ?? [];
  const server = new Shell(t, site, { ...env, PORT: '0' }).start('plugboard start');
  const url = await server.prints(/address +(http:\S+)/);
  const ask = (authorization: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'assistant',
        session_id: 'a',
        messages: [{ role: 'user', content: 'What time is it in Tokyo?' }],
      }),
    });
  t.equal((await ask('Bearer wrong')).status, 401);
  t.match(await (await ask(`Bearer ${token}`)).text(), 'Asia/Tokyo');
  t.equal((await fetch(`${url}/readyz`)).status, 200);
  t.equal(await server.stop(), 0);
  t.ok(existsSync(join(site, 'data/sessions.db')));
  t.ok(existsSync(join(site, 'data/sessions.backup.db')), 'the first backup was made at the start');
});

await t.test('imports only the plugins that the file uses', async (t) => {
  await writeFile(
    join(site, 'small.yaml'),
    'transports: { http: { port: 0 }, chat-completions: {} }\nmodels: { demo: {} }\nagents: { assistant: { model: demo } }\n',
  );
  const loaded = join(site, 'loaded.txt');
  const hook = `
    import { appendFileSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { appendFileSync(${JSON.stringify(loaded)}, url + '\\n'); return next(url, context); } });
  `;
  await writeFile(join(site, 'hook.mjs'), hook);
  await exec(
    process.execPath,
    ['--import', './hook.mjs', 'node_modules/@plugboard/cli/bin/plugboard.js', 'check', '-c', 'small.yaml'],
    {
      cwd: site,
      env,
    },
  );
  const urls = await readFile(loaded, 'utf8');
  const packages = new Set([...urls.matchAll(/node_modules\/(@plugboard\/[\w-]+)\//g)].map(([, name]) => name));
  t.same([...packages].toSorted(), [
    '@plugboard/agent-runtime',
    '@plugboard/cli',
    '@plugboard/kernel',
    '@plugboard/model-demo',
    '@plugboard/openai-protocol',
    '@plugboard/store-memory',
    '@plugboard/transport-chat-completions',
    '@plugboard/transport-http',
    '@plugboard/turn-routes',
  ]);
  t.notMatch(urls, /@modelcontextprotocol|\/ws\/|\/jose\//, 'and not the libraries of the others');
});

for (const kind of KINDS) {
  await t.test(`a new ${kind} plugin installs, builds, passes its tests, and is accepted by the server`, async (t) => {
    await inSite('plugboard', 'create-plugin', `my-${kind}`, `my-${kind}`, '--kind', kind);
    const plugin = join(site, `my-${kind}`);
    const inPlugin = { cwd: plugin, env, maxBuffer: 1e8 };
    await exec('npm', ['install'], inPlugin);
    await exec('npm', ['run', 'build'], inPlugin);
    const { stdout } = await exec('npm', ['test'], inPlugin);
    t.match(stdout, /^ℹ fail 0$/m);
    t.ok(Number(/^ℹ pass (\d+)$/m.exec(stdout)?.[1]) > 15, 'the contract suites ran');
    const test = ['--test', '--test-reporter=@plugboard/testing/reporter'];
    await t.rejects(exec(process.execPath, [...test, 'none/**/*.test.ts'], inPlugin), { code: 1 }, 'a run without tests fails');
    const [example = ''] = /(?<=```yaml\n).*?(?=```)/s.exec(await readFile(join(plugin, 'README.md'), 'utf8')) ?? [];
    const used = example.replace(/use: plugboard-\w+-my-[\w-]+/, `use: ./my-${kind}`);
    const rest = ['transports: { http: {}, chat-completions: {} }', 'models: { demo: {} }'].filter(
      (line) => !used.includes(`${line.split(':')[0]}:`),
    );
    await writeFile(join(site, `${kind}.yaml`), `${used}\n${rest.join('\n')}\n`);
    await appendFile(join(site, '.env'), 'CI_KEY=key-of-the-test\nCHAT_TOKEN=token-of-the-test\n');
    t.match((await inSite('plugboard', 'check', '-c', `${kind}.yaml`)).stdout, `${kind}.yaml is valid`);
  });
}
