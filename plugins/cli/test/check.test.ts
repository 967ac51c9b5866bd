import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { distribution, distributionWith, Plugboard, plugin, run } from './plugboard.js';

t.test('a valid configuration is summarized, and nothing is started', async (t) => {
  const cwd = t.testdir(
    distributionWith('return { async start() { (await import("node:fs")).writeFileSync(ctx.resolvePath("./started"), ""); } };'),
  );
  const { code, stdout, stderr } = await run(t, ['check'], { cwd });
  t.equal(code, 0);
  t.equal(stderr, '');
  t.match(
    stdout,
    /^plugboard.yaml is valid\n {2}plugins +web 0.1.0, model 0.1.0, extra 0.1.0, @plugboard\/store-memory [\d.]+, @plugboard\/agent-runtime [\d.]+\n {2}agents +assistant, other\n {2}models +fast\n {2}sessions +memory\n {2}access +open\n {2}disabled +models.gone: the variable GONE is not set\n$/,
  );
  t.notOk(existsSync(join(cwd, 'started')));
});

t.test('rule 4: an invalid one exits with 78 and prints every mistake to standard error', async (t) => {
  const cwd = t.testdir({
    ...distribution,
    conf: { 'wrong.yaml': 'transports: {}\nmodles: {}\ntools: { a: { use: ./a.js } }\n' },
  });
  const { code, stdout, stderr } = await run(t, ['check', '-c', 'conf/wrong.yaml'], { cwd });
  t.equal(code, 78);
  t.equal(stdout, '');
  t.same(stderr.split('\n'), [
    'conf/wrong.yaml:2:1 modles: unknown section, did you mean "models"?',
    `conf/wrong.yaml:3:20 tools.a.use: no plugin was found at ${join(cwd, 'conf/a.js')}`,
    '',
  ]);
  for (const command of ['start', 'check', 'plugins', 'schema']) {
    t.match(await run(t, [command, '--config=missing.yaml'], { cwd }), {
      code: 78,
      stderr: /^missing.yaml: the file does not exist/,
    });
  }
});

t.test('a folder in place of the file is one sentence, for every command', async (t) => {
  const cwd = t.testdir({ ...distribution, conf: {}, file: '' });
  for (const [args, message] of [
    [['check', '-c', '.'], `.: this is a folder (${cwd}); name a file in it with -c FILE\n`],
    [['start', '-c', 'conf'], `conf: this is a folder (${join(cwd, 'conf')}); name a file in it with -c FILE\n`],
    [['plugins', '-c', `${cwd}/`], `.: this is a folder (${cwd}); name a file in it with -c FILE\n`],
    [
      ['check', '-c', 'file/x.yaml'],
      `file/x.yaml: the file does not exist (${join(cwd, 'file/x.yaml')}); name another one with -c FILE\n`,
    ],
  ] as const) {
    t.strictSame(await run(t, args, { cwd }), { code: 78, stdout: '', stderr: message });
  }
});

t.test('sources whose tools are known only at the start are listed', async (t) => {
  const tools = (single: boolean) =>
    plugin('tools', `ctx.contribute(kernel.ToolSources, { single: ${single}, tools: () => [] })`);
  const yaml = `${distribution['plugboard.yaml']}\ntools: { files: { use: ./files.js }, clock: { use: ./clock.js } }\n`;
  const cwd = t.testdir({ ...distribution, 'plugboard.yaml': yaml, 'files.js': tools(false), 'clock.js': tools(true) });
  const { code, stdout } = await run(t, ['check'], { cwd });
  t.equal(code, 0);
  t.match(stdout, /\n {2}not checked +tools of files \(known when the server starts\)\n$/);
});

t.test('the agent that answers a model that matches nothing is printed', async (t) => {
  const yaml = `${distribution['plugboard.yaml']}\ndefaultAgent: other\n`;
  const { stdout } = await run(t, ['check'], { cwd: t.testdir({ ...distribution, 'plugboard.yaml': yaml }) });
  t.match(stdout, /\n {2}default +other answers a model that matches nothing; the header x-agent names who answered\n/);
});

t.test('the required credential is printed', async (t) => {
  const cwd = t.testdir({
    ...distributionWith('ctx.contribute(AuthProviders, { authenticate() {} })', '', 'auth'),
  });
  const { stdout } = await run(t, ['check'], { cwd });
  t.match(stdout, /\n {2}access +with a credential \(extra\)\n/);
});

t.test('a plugin outside of the folder of the server uses the kernel of the server', async (t) => {
  const outside = realpathSync(mkdtempSync(join(tmpdir(), 'plugboard-outside-')));
  t.teardown(() => rmSync(outside, { recursive: true }));
  writeFileSync(join(outside, 'far.mjs'), plugin('far', 'ctx.contribute(routes, {});'));
  writeFileSync(join(outside, 'lost.mjs'), `import 'not-installed-there'; ${plugin('lost')}`);
  const yaml = (file: string) => `${distribution['plugboard.yaml']}\nplugins: { far: { use: ${join(outside, file)} } }\n`;
  const cwd = t.testdir({ ...distribution, 'lost.yaml': yaml('lost.mjs'), 'far.yaml': yaml('far.mjs') });
  t.match(await run(t, ['check', '-c', 'far.yaml'], { cwd }), { code: 0, stdout: /far 0\.0\.0/, stderr: '' });
  t.match(await run(t, ['check', '-c', 'lost.yaml'], { cwd }), {
    code: 78,
    stderr:
      /imports the package "not-installed-there" in .*lost\.mjs, which is not installed; check the name, and install the package not-installed-there in /,
  });
});

t.test('a module that Node.js takes for CommonJS is reported with the cure', async (t) => {
  const compiled = `
    Object.defineProperty(exports, '__esModule', { value: true });
    exports.default = { [Symbol.for('plugboard.plugin')]: true, name: 'odd' };`;
  for (const module of [compiled, plugin('odd')]) {
    const cwd = t.testdir({
      'plugboard.yaml': 'transports: {}\nplugins:\n  odd: { use: ./odd/odd.js }\n',
      odd: { 'package.json': '{ "type": "commonjs" }', 'odd.js': module },
    });
    const cure = /odd.js as a CommonJS module; add "type": "module" to the package.json beside it and build it as an ES module$/m;
    t.match(await run(t, ['check'], { cwd }), { code: 78, stderr: cure });
  }
});

t.test('check and start warn of a channel whose state ends with the process', async (t) => {
  const desk = `desk: { use: webhook, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, replyUrl: "https://crm.example.com/", agent: a }`;
  const yaml = `transports: { http: { port: 0 }, ${desk} }\nmodels: { demo: {} }\nagents: { a: { model: demo } }\n`;
  const warning = /warning:? +desk: messages that wait, .*in memory.*sessions: \{ use: sqlite, path: \.\/sessions\.db \}/;
  const cwd = t.testdir({ 'plugboard.yaml': yaml, 'durable.yaml': `${yaml}sessions: { use: sqlite, path: ./s.db }\n` });
  t.match(await run(t, ['check'], { cwd }), { code: 0, stderr: warning });
  t.match(await run(t, ['check', '-c', 'durable.yaml'], { cwd }), { code: 0, stderr: '' });
  const program = new Plugboard(t, ['start'], { cwd });
  await program.prints('channels');
  t.match(program.stdout, warning);
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('check: a misspelt operation of an OpenAPI document in an agent’s tools is reported with its line', async (t) => {
  const paths = { '/orders': { get: { operationId: 'listOrders' } } };
  const yaml = `transports: { http: {} }
models: { fast: { use: demo } }
tools: { shop: { use: http, openapi: ./shop.json, baseUrl: "https://shop.example.com" } }
agents:
  ops: { model: fast, tools: [shop/listOrdrs] }
`;
  const document = JSON.stringify({ openapi: '3.1.0', info: { title: 'Shop', version: '1' }, paths });
  const cwd = t.testdir({ 'plugboard.yaml': yaml, 'shop.json': document });
  const { code, stderr, stdout } = await run(t, ['check'], { cwd });
  t.equal(code, 78);
  t.match(
    stdout + stderr,
    /plugboard\.yaml:5:\d+ agents\.ops\.tools\[0\]: unknown tool "listOrdrs", did you mean "shop\/listOrders"\?/,
  );
});
