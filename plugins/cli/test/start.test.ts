import { join } from 'node:path';
import t, { type Test } from 'tap';
import { distribution, distributionWith, Plugboard, run } from './plugboard.js';

const start = (t: Test, files: Readonly<Record<string, string>>, env?: Record<string, string>) =>
  new Plugboard(t, ['start'], { cwd: t.testdir(files), ...(env && { env }) });

t.test('the banner lists agents and models and shows a request to try', async (t) => {
  const program = start(t, distribution);
  await program.prints('curl ');
  const address = /^ {2}address +(http:\/\/127\.0\.0\.1:\d+)$/m.exec(program.stdout)?.[1];
  t.match(
    program.stdout,
    new RegExp(
      String.raw`^plugboard \d+\.\d+\.\d+\n {2}agents +assistant, other\n {2}models +fast\n {2}sessions +memory\n {2}process +\d+\n` +
        String.raw` {2}access +open\n {2}warning +anyone who can reach the address .*\n {2}address +.*\n {2}try +curl .*\n$`,
    ),
  );
  t.match(
    program.stdout,
    `try         curl ${address}/v1/chat/completions -H 'content-type: application/json' -d '{"model":"assistant","messages":[`,
  );
  t.equal(await (await fetch(address ?? '')).text(), 'running');
  t.match(program.log, [{ level: 'info', msg: 'models.gone is disabled: the variable GONE is not set', service: 'plugboard' }]);
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
  await t.rejects(fetch(address ?? ''));
  t.match(program.log.at(-1), { level: 'info', msg: /^SIGTERM: stopping/ }, 'what is logged last is written too');
});

t.test('the banner names the required credential and prints no warning', async (t) => {
  const program = start(
    t,
    distributionWith(
      'ctx.contribute(AuthProviders, { authenticate() {} });' +
        'ctx.contribute(routes, { kind: "link", label: "page", text: "/page" })',
      '',
      'auth',
    ),
  );
  await program.prints('curl ');
  t.match(
    program.stdout,
    new RegExp(
      String.raw`\n {2}access +with a credential \(extra\)\n {2}address +(http:.*)\n {2}page +\1/page\n` +
        String.raw` {2}try +curl \1/v1/chat/completions -H "authorization: Bearer \$PLUGBOARD_TOKEN" `,
    ),
  );
  t.notMatch(program.stdout, 'warning');
  program.kill('SIGINT');
  t.equal(await program.exit(), 0);
});

t.test('the banner names a missing agent, model or address', async (t) => {
  const program = start(t, { 'plugboard.yaml': 'transports: {}\n' });
  await program.prints('address');
  t.match(
    program.stdout,
    /agents +none: the server is not ready without one\n {2}models +none: the server is not ready without one\n/,
  );
  t.match(program.stdout, /address +none: no entry listens for callers; add a transport that does, such as http: \{\}\n$/);
  t.notMatch(program.stdout, 'warning', 'no caller can reach a server without an address');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0, 'and runs all the same');
});

t.test('the banner shows a request only to an address that serves it', async (t) => {
  const socket = `ctx.contribute(Transports, { address: () => 'tcp://127.0.0.1:9' });
    ctx.contribute(routes, { kind: 'link', label: 'page', text: '/page' })`;
  const files = distributionWith(socket);
  const before = {
    ...files,
    'plugboard.yaml': (files['plugboard.yaml'] ?? '')
      .replace('{ web:', '{ socket: { use: ./extra.js }, web:')
      .replace(/plugins: .*/, ''),
  };
  const program = start(t, before);
  await program.prints('curl ');
  t.match(
    program.stdout,
    / {2}address +tcp:\/\/127\.0\.0\.1:9\n {2}address +(http:.*)\n {2}page +\1\/page\n {2}try +curl \1\/v1\/chat/,
  );
  program.kill('SIGTERM');
  await program.exit();

  const silent = { ...distribution, 'model.js': (distribution['model.js'] ?? '').replace('/v1/chat/completions', '/v1/other') };
  const other = start(t, silent);
  await other.prints('address ');
  t.notMatch(other.stdout, 'curl', 'no route for chat completions');
  other.kill('SIGTERM');
  await other.exit();
});

t.test('the banner names channels, which have no address', async (t) => {
  const channel = `
    import { definePlugin } from '@plugboard/kernel';
    export default definePlugin({
      name: 'pager', apiVersion: 1, summary: 'A channel', configSchema: { type: 'object', properties: {} },
      register() { let timer; return { start() { timer = setInterval(() => {}, 1000); }, stop() { clearInterval(timer); } }; },
    });`;
  const yaml = 'transports: { pager: { use: ./pager.mjs } }\nsessions: { use: sqlite, path: ./sessions.db }\n';
  const files = { 'plugboard.yaml': yaml, 'pager.mjs': channel };
  const program = start(t, files);
  await program.prints('channels');
  t.match(program.stdout, / {2}access +none: no entry listens for callers\n(?:still starting: .+\n)? {2}channels +pager\n$/);
  t.notMatch(program.stdout, /address|warning/);
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
  const { stdout } = await run(t, ['check'], { cwd: t.testdir(files) });
  t.match(stdout, / {2}access +none: no entry listens for callers\n {2}channels +pager\n/);
});

t.test('a slow start names the entry that it waits for', async (t) => {
  const program = start(
    t,
    distributionWith('return { start: () => new Promise((resolve) => process.once("SIGUSR2", resolve)) };'),
  );
  await program.prints('still starting: plugins.extra\n');
  t.match(program.stdout, /agents +assistant, other\n/, 'and all else that is known');
  t.notMatch(program.stdout, 'http:');
  program.kill('SIGUSR2');
  await program.prints('curl ');
  t.equal(program.stdout.split('assistant, other').length, 2, 'nothing is printed twice');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('R-050 a plugin that throws in start ends the process with 1 and is named with version, path and line', async (t) => {
  const program = start(t, distributionWith('return { start() { throw new Error("no luck"); } };'));
  t.equal(await program.exit(), 1);
  t.match(program.log.at(-1), {
    level: 'fatal',
    msg: `plugboard.yaml:4:12 plugins.extra did not start: no luck (plugin extra 0.1.0, ${join(t.testdirName, 'extra.js')})`,
    err: { message: 'no luck' },
  });
  t.equal(program.stdout, '', 'nothing is said to listen');
});

t.test('an address in use is logged without the stacks of its errors', async (t) => {
  const program = start(
    t,
    distributionWith(`return { async start() {
      const { createServer } = await import('node:net');
      const listen = (port) => new Promise((resolve, reject) => {
        const server = createServer().once('error', reject).listen(port, '127.0.0.1', () => resolve(server.address().port));
      });
      await listen(await listen(0)).catch((cause) => { throw new Error('the port is in use', { cause }); });
    } };`),
  );
  t.equal(await program.exit(), 1);
  t.match(program.log.at(-1), { level: 'fatal', msg: /plugins\.extra did not start: the port is in use/ });
  t.notMatch(program.stderr, /"err"|"stack"/);
});

t.test('a database in use is logged without the stacks of its errors', async (t) => {
  const yaml = `${distribution['plugboard.yaml']}\nsessions: { use: sqlite, path: ./sessions.db }\n`;
  const first = start(t, { ...distribution, 'plugboard.yaml': yaml });
  await first.prints('curl ');
  const second = new Plugboard(t, ['start'], { cwd: t.testdirName });
  t.equal(await second.exit(), 1);
  t.match(second.log.at(-1), {
    level: 'fatal',
    msg: /sessions did not start: .* is in use by another process: .* Stop the other one/,
  });
  t.notMatch(second.stderr, /"err"|"stack"/);
});

t.test('R-050 an optional plugin that throws in start does not', async (t) => {
  const program = start(t, distributionWith('return { start() { throw new Error("no luck"); } };', ', optional: true'));
  await program.prints('curl ');
  t.match(await program.logs('disabled: plugins.extra did not start: no luck'), { level: 'warn' });
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('R-051 a start that never settles ends at its time limit', async (t) => {
  const program = start(t, distributionWith('return { start: () => new Promise(() => {}), startLimit: 1200 };'));
  t.equal(await program.exit(), 1);
  t.match(program.log.at(-1), { msg: /^plugboard.yaml:\d+:\d+ plugins.extra did not start within 1.2 s/ });
});

t.test('R-061 an unclean stop exits with 1', async (t) => {
  const program = start(t, distributionWith('return { stop() { throw new Error("3 turns were cut"); } };'));
  await program.prints('curl ');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 1);
  t.match(program.log.at(-1), { level: 'error', msg: /^plugins.extra did not stop cleanly: 3 turns were cut \(plugin extra/ });
});

t.test('R-061 a second signal ends the process at once', async (t) => {
  const program = start(t, distributionWith('return { stop() { ctx.log.info("waiting"); return new Promise(() => {}); } };'));
  await program.prints('curl ');
  program.kill('SIGTERM');
  await program.logs('waiting');
  program.kill('SIGINT');
  t.equal(await program.exit(), 1);
});

t.test('Ctrl-C under npm, which delivers the signal twice, counts as one signal', async (t) => {
  const program = start(
    t,
    distributionWith('return { stop: () => new Promise((resolve) => process.once("SIGUSR2", resolve)) };'),
  );
  await program.prints('curl ');
  program.kill('SIGINT');
  await program.logs('SIGINT: stopping');
  program.kill('SIGINT');
  program.kill('SIGUSR2');
  t.equal(await program.exit(), 0);
});

t.test('a signal during the start stops it without a failure', async (t) => {
  const program = start(
    t,
    distributionWith(
      'return { start() { ctx.log.info("waiting"); return new Promise(() => {}); }, stop() { ctx.log.info("stopped"); } };',
    ),
  );
  await program.logs('waiting');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
  t.match(program.log.at(-1), { msg: 'stopped' });
});

for (const [kind, crash] of [
  ['exception', 'setTimeout(() => { throw new Error("out of the blue"); }, 1)'],
  ['rejection', 'Promise.reject(new Error("out of the blue"))'],
]) {
  t.test(`R-065 an uncaught ${kind} is logged, the server becomes not ready, stops and exits with 1`, async (t) => {
    const body = `
      return {
        start() { process.once('SIGUSR2', () => { ${crash}; }); },
        stop() { ctx.log.info('stopping in phase ' + ctx.host.phase); },
      };
    `;
    const program = start(t, distributionWith(body));
    await program.prints('curl ');
    program.kill('SIGUSR2');
    t.equal(await program.exit(), 1);
    t.match(program.log.slice(-2), [
      { level: 'fatal', msg: 'uncaught error: stopping', err: { message: 'out of the blue', stack: /extra\.js/ } },
      { msg: 'stopping in phase stopping' },
    ]);
  });
}

t.test('SIGHUP without a changed configuration changes nothing', async (t) => {
  const program = start(t, distribution);
  await program.prints('curl ');
  program.kill('SIGHUP');
  t.match(await program.logs('SIGHUP: the configuration has not changed'), { level: 'info' });
  const audited = program.log.filter(({ log }) => log === 'audit').flatMap(({ entries }) => entries);
  t.same(audited, ['runtime'], 'which accepts tools; no plugin reads files');
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('SIGHUP reloads the files of plugins and is audited', async (t) => {
  const program = start(t, distributionWith('return { reload() { ctx.log.info("read again"); } };'));
  await program.prints('curl ');
  program.kill('SIGHUP');
  await program.logs('SIGHUP: the configuration has not changed');
  t.match(program.log.slice(-3), [
    { msg: 'read again', entry: 'plugins.extra' },
    { log: 'audit', event: 'configuration_reloaded', entries: ['plugins.extra', 'runtime'] },
    { level: 'info' },
  ]);
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});

t.test('a plugin that fails to reload is named in the log, and the server continues', async (t) => {
  const program = start(t, distributionWith('return { reload() { throw new Error("no such file"); } };'));
  await program.prints('curl ');
  program.kill('SIGHUP');
  t.match(await program.logs('plugins.extra did not reload: no such file (plugin extra'), { level: 'error' });
  await program.logs('SIGHUP: the configuration has not changed');
  t.notOk(program.log.some(({ log, entries }) => log === 'audit' && String(entries).includes('extra')));
  program.kill('SIGTERM');
  t.equal(await program.exit(), 0);
});
