import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ManualClock, startServer } from '../../src/index.js';

/** Plugins that need no package: they stand beside the configuration, as a user's own may. */
const files = {
  'web.mjs': `
    import { createServer } from 'node:http';
    import { definePlugin, Transports } from '@plugboard/kernel';
    const server = createServer((request, response) => response.end('hello'));
    export default definePlugin({
      name: 'web', apiVersion: 1, summary: 'Says hello over HTTP',
      configSchema: { type: 'object', properties: { port: { type: 'integer' } } },
      register(ctx) {
        ctx.contribute(Transports, { address: () => server.listening ? 'http://127.0.0.1:' + server.address().port : undefined });
        return {
          start: () => new Promise((resolve) => server.listen(ctx.config.port, '127.0.0.1', () => {
            ctx.log.info({ port: ctx.config.port }, 'listening');
            resolve();
          })),
          stop: () => new Promise((resolve) => server.close(resolve)),
        };
      },
    });`,
  'lib/odd.mjs': `
    import { definePlugin } from '@plugboard/kernel';
    const fail = (when) => () => { throw new Error('no ' + when); };
    export default definePlugin({
      name: 'odd', apiVersion: 1, summary: 'Does not do what it is asked',
      configSchema: { type: 'object', properties: { refuses: { enum: ['start', 'stop'] } } },
      register: ({ config }) => ({ [config.refuses]: fail(config.refuses) }),
    });`,
  'lib/store.mjs': `
    import { definePlugin, SessionStores } from '@plugboard/kernel';
    export default definePlugin({
      name: 'store', apiVersion: 1, summary: 'Keeps nothing', configSchema: { type: 'object', properties: {} },
      register(ctx) {
        const own = { isVolatile: true, shared: undefined, health: async () => ({ ok: true }), recover: async () => [] };
        ctx.contribute(SessionStores, new Proxy(own, { get: (_, name) => (name in own ? own[name] : () => undefined) }));
      },
    });`,
};
const WEB = `
transports: { web: { use: ./web.mjs, port: "\${PORT}" } }
sessions: { use: ./lib/store.mjs }
`;

t.test('a whole server runs from the text of its configuration, and leaves nothing behind', async (t) => {
  const server = await startServer(WEB, { files, env: { PORT: '0' }, clock: new ManualClock() });
  t.equal(await (await fetch(server.url)).text(), 'hello');
  t.match(
    server.logs.filter(({ entry }) => entry === 'transports.web'),
    [{ msg: 'listening', port: 0, time: '2026-01-01T00:00:00.000Z' }],
  );
  t.equal(server.server.host.phase, 'running');
  t.ok(existsSync(server.folder));
  await server.stop();
  t.throws(() => server.url, { message: 'no transport of this server has an address; is `http` among its transports?' });
  t.notOk(existsSync(server.folder));
});

t.test('a server that does not stop cleanly reports it, and its folder is removed anyway', async (t) => {
  const server = await startServer(`${WEB}plugins: { odd: { use: ./lib/odd.mjs, refuses: stop } }`, {
    files,
    env: { PORT: '0' },
  });
  await t.rejects(server.stop(), { name: 'AggregateError', message: /^plugins\.odd did not stop cleanly: no stop/ });
  t.notOk(existsSync(server.folder));
});

t.test('an invalid configuration is refused, and the environment of the process is not used', async (t) => {
  process.env.PORT_OF_THIS_TEST = '0';
  t.teardown(() => delete process.env.PORT_OF_THIS_TEST);
  await t.rejects(startServer(WEB.replace('PORT', 'PORT_OF_THIS_TEST'), { files }), {
    name: 'ConfigError',
    message: /the variable PORT_OF_THIS_TEST is not set/,
  });
  await t.rejects(startServer('log: { level: info }'), { name: 'ConfigError' });
});

t.test('a server that does not start says why', async (t) => {
  await t.rejects(startServer(`${WEB}plugins: { odd: { use: ./lib/odd.mjs, refuses: start } }`, { files, env: { PORT: '0' } }), {
    name: 'StartError',
    message: /plugboard\.yaml:\d+:\d+ plugins\.odd did not start: no start/,
  });
});

t.test('a file of your own runs where it is, and stays', async (t) => {
  const own = t.testdir({
    'plugboard.yaml': WEB,
    '.env': 'PORT=0',
    'web.mjs': files['web.mjs'],
    lib: { 'store.mjs': files['lib/store.mjs'] },
  });
  const file = join(own, 'plugboard.yaml');
  const server = await startServer({ file });
  t.equal(await (await fetch(server.url)).text(), 'hello');
  t.equal(server.folder, own);
  await server.stop();
  t.equal(readFileSync(file, 'utf8'), WEB);
});

t.test('what the kit did not write in a folder is never overwritten', async (t) => {
  const folder = t.testdir({ 'plugboard.yaml': 'mine: true', 'web.mjs': '// mine' });
  const start = async (yaml: string) => (await startServer(yaml, { files, folder, env: { PORT: '0' } })).stop();
  await t.rejects(start(WEB), {
    message: /would overwrite .*plugboard\.yaml, which it did not write: to run it, call startServer\(\{ file/,
  });
  rmSync(join(folder, 'plugboard.yaml'));
  await t.rejects(start(WEB), { message: /would overwrite .*web\.mjs, which it did not write: give another folder/ });
  t.equal(readFileSync(join(folder, 'web.mjs'), 'utf8'), '// mine');
  t.notOk(existsSync(join(folder, 'plugboard.yaml')), 'nothing was written');
  rmSync(join(folder, 'web.mjs'));
  await start(WEB);
  await start(`${WEB}log: { level: warn }`); // its own file may change
  t.match(readFileSync(join(folder, 'plugboard.yaml'), 'utf8'), 'level: warn');
});
