import { createServer, type Server as HttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CapturedLog, startServer } from '@plugboard/testing';
import t from 'tap';
import type { ComposeOptions, ServerConfig } from '../src/compose.js';
import { ConfigError, compose, definePlugin, ToolSources, Transports } from '../src/index.js';

const hello = definePlugin({
  name: 'hello',
  apiVersion: 1,
  summary: 'Says hello over HTTP',
  configSchema: { type: 'object', properties: { greeting: { type: 'string', minLength: 1, default: 'hello' } } },
  register(ctx) {
    const server: HttpServer = createServer((_, response) => response.end(ctx.config.greeting));
    const address = () => (server.listening ? `http://127.0.0.1:${(server.address() as AddressInfo).port}` : undefined);
    ctx.contribute(Transports, { address });
    return {
      start: () => new Promise((resolve) => server.listen(0, '127.0.0.1', resolve)),
      stop: () => void server.close(),
    };
  },
});

const config = (more: Partial<ServerConfig> = {}): ServerConfig => ({
  transports: { web: { use: hello, greeting: `\${NOT_A_VARIABLE}` } },
  ...more,
});

const composed = (options: ComposeOptions) => compose({ logTo: new CapturedLog(), ...options });

t.test('a program composes, starts and stops a server from an object, with plugin objects', async (t) => {
  const server = await composed({ config: config() });
  t.match(server.host.entries()[0], { entry: 'transports.web', status: 'registered' });
  await server.start();
  const address = server.extensions(Transports).one().address() ?? '';
  t.equal(await (await fetch(address)).text(), `\${NOT_A_VARIABLE}`, 'a program has no variables to replace');
  t.strictSame(await server.stop(), []);
  await t.rejects(fetch(address));
});

t.test('mistakes in an object are named by their path', async (t) => {
  const broken = composed({
    config: config({ transports: { web: { use: hello, greeting: '' } }, tools: { none: {} }, plgins: {} }),
  });
  const error = await broken.then(
    () => undefined,
    (error: unknown) => error,
  );
  t.ok(error instanceof ConfigError);
  t.match(error instanceof ConfigError && error.problems.map(({ code, path, message }) => [code, path.join('.'), message]), [
    ['PLUGIN_NOT_INSTALLED', 'tools.none'],
    ['SECTION_UNKNOWN', 'plgins', 'unknown section, did you mean "plugins"?'],
    ['OPTION_INVALID', 'transports.web.greeting', 'must not be empty'],
  ]);
  t.match(error, { message: /^configuration transports\.web\.greeting: must not be empty \(plugin hello 0\.0\.0\)$/m });
});

t.test('a plugin object that this kernel cannot use is refused', async (t) => {
  const newer = { ...hello, apiVersion: 2 };
  await t.rejects(composed({ config: config({ tools: { newer: { use: newer } } }) }), {
    message:
      /^configuration tools\.newer\.use: the plugin hello 0\.0\.0 at \(object\) needs plugin API 2, which @plugboard\/kernel .* does not have; update @plugboard\/kernel$/,
  });
});

t.test('one plugin object serves any number of entries, each with its own options', async (t) => {
  const tool = definePlugin({
    name: 'tool',
    apiVersion: 1,
    summary: 'Offers nothing',
    configSchema: { type: 'object', properties: { n: { type: 'integer' } } },
    register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [] }),
  });
  const server = await composed({ config: config({ tools: { a: { use: tool, n: 1 }, b: { use: tool } } }) });
  t.strictSame(
    Array.from(server.extensions(ToolSources), ({ name }) => name),
    ['a', 'b'],
  );
});

t.test('sections of a file are left out and replaced, with plugin objects, without their variables', async (t) => {
  const offers = (name: string) =>
    definePlugin({
      name,
      apiVersion: 1,
      summary: 'Offers nothing',
      configSchema: { type: 'object', properties: {} },
      register: (ctx) => ctx.contribute(ToolSources, { single: true, tools: () => [] }),
    });
  const cwd = t.testdir({
    'plugboard.yaml': `transports: { web: { use: not-there } }\ntools: { a: { use: not-there, key: "\${NOT_SET}" }, b: {} }\n`,
  });
  let given: unknown;
  const server = await composed({
    cwd,
    omit: ['transports'],
    replace: {
      tools: (tools) => {
        given = tools;
        return Object.fromEntries(Object.keys(tools as object).map((name) => [name, { use: offers(`recorded-${name}`) }]));
      },
      plugins: { more: { use: definePlugin({ ...offers('more'), register: () => ({ start: () => {} }) }) } },
    },
  });
  t.strictSame(given, { a: { use: 'not-there', key: `\${NOT_SET}` }, b: {} });
  t.match(server.host.entries(), [
    { entry: 'tools.a', plugin: 'recorded-a' },
    { entry: 'tools.b', plugin: 'recorded-b' },
    { entry: 'plugins.more', plugin: 'more' },
  ]);
});

t.test('the kit also starts a server from an object', async (t) => {
  const server = await startServer({ transports: { web: { use: hello } } });
  t.equal(await (await fetch(server.url)).text(), 'hello');
  await server.stop();
});

t.test('without a file or an object, plugboard.yaml of the working folder is read', async (t) => {
  await t.rejects(composed({ cwd: t.testdir() }), { message: /^plugboard\.yaml: the file does not exist/ });
});
