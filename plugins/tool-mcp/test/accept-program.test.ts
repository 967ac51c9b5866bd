import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { CERTIFICATE } from './certificate.js';
import { entry } from './entry.js';
import { mcpServer } from './http-server.js';

const BIN = join(import.meta.dirname, '../../cli/bin/plugboard.js');

/** A folder with a configuration, and the program in it. */
function distribution(t: Test) {
  const cwd = t.testdir({});
  const write = (tools: object) =>
    writeFileSync(join(cwd, 'plugboard.yaml'), JSON.stringify({ transports: { http: {} }, tools }));
  const plugboard = async (args: readonly string[], extra: object = {}) => {
    const { PATH, NODE_OPTIONS } = process.env;
    const env = { PATH, NODE_OPTIONS, ...extra };
    const child = spawn(process.execPath, [BIN, 'tools', ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { out, err, code };
  };
  return { cwd, write, plugboard };
}

t.test('MCP-9 the program accepts the tools of the one MCP server, or of the entry that is named', async (t) => {
  const server = await mcpServer(t, 'new');
  const { cwd, plugboard, write } = distribution(t);
  write({ docs: { use: 'mcp', url: server.url } });
  t.match(await plugboard(['accept']), {
    out: 'tools.docs: 2 added, 0 changed, 0 removed; accepted\n  added    echo\n  added    write\n',
    code: 0,
  });
  t.match(await plugboard(['accept']), { out: 'tools.docs: nothing has changed\n', code: 0 });
  const { servers } = JSON.parse(readFileSync(join(cwd, 'data/accepted-tools.json'), 'utf8'));
  t.match(servers, { 'tools.docs': { tools: { echo: /^sha256:/, write: /^sha256:/ } } });

  write({ docs: { use: 'mcp', url: server.url }, down: { use: 'mcp', url: 'http://127.0.0.1:9/mcp' } });
  t.match(await plugboard(['accept']), { err: /choose one, for example --entry tools.docs/, code: 2 });
  t.match(await plugboard(['accept', '--entry', 'tools.down']), {
    err: /^plugboard: http:\/\/127.0.0.1:9 cannot be reached/,
    code: 1,
  });
  t.match(await plugboard(['accept', '--help']), {
    out: /^Usage: plugboard tools accept \[-c FILE\] \[--entry ENTRY\]/,
    code: 0,
  });
  write({});
  t.match(await plugboard(['accept']), {
    err: /needs? .*|no plugin of plugboard.yaml provides it; install @plugboard\/tool-mcp/,
    code: 2,
  });
});

t.test('a certificate of an unknown authority is refused with the cure, and works with NODE_EXTRA_CA_CERTS', async (t) => {
  const mcp = await mcpServer(t, 'new');
  const server = createServer(CERTIFICATE, (incoming, response) => {
    const { method, url, headers } = incoming;
    const onward = request(new URL(url ?? '', mcp.url), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const message = new RegExp(
    `^${origin} cannot be reached: its certificate is not trusted \\(self-signed certificate\\): start Plugboard with NODE_EXTRA_CA_CERTS `,
  );
  await t.rejects(entry(t, { url: `${origin}/mcp` }).start(), { code: 'mcp_not_started', message });
  t.equal(mcp.received.length, 0);

  const { cwd, plugboard, write } = distribution(t);
  write({ docs: { use: 'mcp', url: `${origin}/mcp` } });
  writeFileSync(join(cwd, 'ca.pem'), CERTIFICATE.cert);
  t.match(await plugboard(['accept']), { err: /its certificate is not trusted/, code: 1 });
  t.match(await plugboard(['accept'], { NODE_EXTRA_CA_CERTS: 'ca.pem' }), { out: /2 added/, code: 0 });
});
