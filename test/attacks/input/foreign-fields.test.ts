import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Caller } from '../../support/conversations.js';
import { saying, type TestServer } from '../../support/test-server.js';
import { bearer } from '../../support/tokens.js';
import { toolFixtures, WITH_TOOLS } from '../../support/with-tools.js';
import { startWithAllRoutes, TOKEN } from '../support/all-routes.js';
import { childrenOf } from '../support/children.js';
import { everyRoute } from '../support/every-route.js';
import { treeOf } from '../support/tree.js';

const SECRET = 'The password is swordfish.';
const OWN = /^data(\/|$)/;

const files = {
  ...toolFixtures.files,
  'secret.md': SECRET,
  // Whoever loads it as a plugin, or for whatever reason, is found out.
  'evil.mjs': 'globalThis.__loaded = true; export default { name: "evil" };',
};

/** Everything below the transports: agents with real tools, one of them in a separate process. */
const [, more = ''] = WITH_TOOLS.split(/(?=^models:)/m);

/** Counts calls, and answers each with what a caller would like a server to use. */
async function listener(t: Test) {
  let calls = 0;
  const server = createServer((_, response) => {
    calls++;
    response.setHeader('content-type', 'application/json').end('{"result":{}}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls: () => calls };
}

/**
 * Fields that some server or other takes for the name of a file, a module, a command or an address.
 */
function foreignFields({ started: { folder } }: TestServer, url: string): readonly object[] {
  const file = join(folder, 'secret.md');
  const evil = join(folder, 'evil.mjs');
  const started = join(folder, 'started');
  const mcp = { server_label: 'evil', server_url: `${url}/mcp`, require_approval: 'never', authorization: 'canary' };
  const stdio = { transport: 'stdio', command: 'touch', args: [started], env: { NODE_OPTIONS: `--import=${evil}` }, cwd: '/' };
  return [
    ...[file, `file://${file}`, './secret.md', { file }, { path: file }, { $ref: `file://${file}` }].flatMap((value) => [
      { promptFile: value },
      { prompt_file: value },
      { system: value },
      { instructions: value },
      { prompt: value },
      { path: value, file: value, filename: value, include: [value], attachments: [value], file_ids: [value] },
    ]),
    { command: 'touch', args: [started] },
    { exec: `touch ${started}`, shell: `touch ${started}`, cmd: ['touch', started], run: `touch ${started}` },
    { mcp_servers: [{ name: 'evil', ...stdio }], mcpServers: { evil: stdio }, mcp: stdio },
    { mcp_servers: [{ type: 'url', name: 'evil', url: `${url}/sse` }] },
    { use: evil, plugin: evil, plugins: [{ use: evil }], module: evil, import: evil, require: evil, extends: evil },
    { url, callback: url, callback_url: url, webhook: url, webhook_url: url, notify: url, proxy: url, base_url: `${url}/v1` },
    { agents: { evil: { model: 'fast', system: { file } } }, config: { log: { level: 'trace' } }, tools_config: stdio },
    { background: true, container: { type: 'auto' }, code_interpreter: { files: [file] } },
    { tools: [{ type: 'mcp', ...mcp }] },
    { tools: [{ type: 'mcp', ...stdio }] },
    { tools: [{ type: 'web_search' }, { type: 'file_search', vector_store_ids: [file] }, { type: 'local_shell' }] },
    { tools: [{ type: 'function', function: { name: 'f', command: 'touch', args: [started], server_url: url } }] },
    { tools: [{ type: 'function', function: { name: 'f', parameters: { $ref: `file://${file}` } } }] },
    { tools: [{ type: 'function', function: { name: 'f', parameters: { $ref: `${url}/schema` } } }] },
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'x', schema: { $ref: `${url}/schema`, $schema: `${url}/meta` } },
      },
    },
    { metadata: { command: `touch ${started}`, url, path: file } },
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `${url}/image.png` } }] }] },
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: `file://${file}` } }] }] },
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: file, filename: file } }] }] },
    {
      messages: [
        { role: 'system', content: 'x', file, path: file },
        { role: 'user', content: 'Hi', file, url },
      ],
    },
    {
      web_search_options: { url, proxy: url },
      audio: { url },
      prediction: { type: 'content', content: { file } },
      moderation: { url },
    },
  ];
}

async function withListener(t: Test, auth?: string) {
  const app = await startWithAllRoutes(t, { ...toolFixtures, files, more, ...(auth === undefined ? {} : { auth }) });
  return { app, ...(await listener(t)) };
}

for (const [who, auth] of [
  ['a caller with a token', undefined],
  ['a caller of an open server', ''],
] as const) {
  t.test(`S-16 S-20 no field of ${who} reads a file, starts a process, loads a module or opens a connection`, async (t) => {
    const others = childrenOf();
    const { app, url, calls } = await withListener(t, auth);
    const headers = bearer(TOKEN);
    const caller = new Caller(app, TOKEN);
    const before = {
      tree: treeOf(app.started.folder, { but: OWN }),
      children: childrenOf(),
      entries: app.started.server.host.entries(),
    };
    t.ok(
      before.children.some((child) => !others.includes(child)),
      'the MCP server of the configuration',
    );
    const said: string[] = [];
    let ran = 0;
    for (const fields of foreignFields(app, url)) {
      for (const model of ['assistant', 'fast']) {
        for (const stream of [false, true]) {
          const { status, text } = await app.chat(saying('Hi', { ...fields, model, stream }), headers);
          if (status !== 200 && status !== 400) t.fail(`${JSON.stringify(fields)}: ${status}: ${text}`);
          if (status === 200) ran++;
          said.push(text);
        }
      }
      for (const { method, path, takesJson } of everyRoute(app)) {
        if (!takesJson || !path.startsWith('/v1/conversations')) continue;
        const { status, text } = await caller.send(method, path.slice('/v1/conversations'.length), { ...fields, metadata: {} });
        t.ok([200, 400, 404].includes(status), `${path}: ${status}`);
        said.push(text);
      }
      const query = new URLSearchParams(Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]));
      said.push((await app.get(`/v1/models?${query}`, headers)).text, (await app.get(`/health?${query}`)).text);
    }
    t.ok(ran > 150, `${ran} of them ran`);
    t.notMatch(said.join('\n'), SECRET);
    t.notMatch(JSON.stringify(app.models.requests), SECRET);
    t.equal(calls(), 0);
    t.notOk(existsSync(join(app.started.folder, 'started')));
    t.notOk('__loaded' in globalThis);
    t.same(childrenOf(), before.children);
    t.same(treeOf(app.started.folder, { but: OWN }), before.tree);
    t.same(app.started.server.host.entries(), before.entries);
    t.ok(app.models.requests.every(({ body }) => !JSON.stringify(body.tools ?? []).includes('"mcp"')));
  });
}

t.test('S-20 no header does so either', async (t) => {
  const { app, url, calls } = await withListener(t);
  const children = childrenOf();
  const file = join(app.started.folder, 'secret.md');
  for (const name of [
    'x-prompt-file',
    'x-config',
    'x-plugin',
    'x-mcp-servers',
    'x-mcp-command',
    'x-base-url',
    'x-forwarded-host',
    'x-original-url',
    'x-rewrite-url',
  ]) {
    for (const value of [file, url, `touch ${join(app.started.folder, 'started')}`, JSON.stringify([{ command: 'touch' }])]) {
      const reply = await app.chat(saying('Hi'), { ...bearer(TOKEN), [name]: value });
      t.equal(reply.status, 200, name);
      t.notMatch(reply.text, SECRET);
    }
  }
  t.equal(calls(), 0);
  t.same(childrenOf(), children);
  t.notOk(existsSync(join(app.started.folder, 'started')));
});
