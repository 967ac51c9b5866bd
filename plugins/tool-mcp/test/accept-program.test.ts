import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { mcpServer } from './http-server.js';

const BIN = join(import.meta.dirname, '../../cli/bin/plugboard.js');

t.test('MCP-9 the program accepts the tools of the one MCP server, or of the entry that is named', async (t) => {
  const server = await mcpServer(t, 'new');
  const cwd = t.testdir({});
  const write = (tools: object) =>
    writeFileSync(join(cwd, 'plugboard.yaml'), JSON.stringify({ transports: { http: {} }, tools }));
  const plugboard = async (...args: string[]) => {
    const { PATH, NODE_OPTIONS } = process.env;
    const child = spawn(process.execPath, [BIN, 'tools', ...args], {
      cwd,
      env: { PATH, NODE_OPTIONS },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
    return { out, err, code };
  };
  write({ docs: { use: 'mcp', url: server.url } });
  t.match(await plugboard('accept'), {
    out: 'tools.docs: 2 added, 0 changed, 0 removed; accepted\n  added    echo\n  added    write\n',
    code: 0,
  });
  t.match(await plugboard('accept'), { out: 'tools.docs: nothing has changed\n', code: 0 });
  const { servers } = JSON.parse(readFileSync(join(cwd, 'data/accepted-tools.json'), 'utf8'));
  t.match(servers, { 'tools.docs': { tools: { echo: /^sha256:/, write: /^sha256:/ } } });

  write({ docs: { use: 'mcp', url: server.url }, down: { use: 'mcp', url: 'http://127.0.0.1:9/mcp' } });
  t.match(await plugboard('accept'), { err: /choose one, for example --entry tools.docs/, code: 2 });
  t.match(await plugboard('accept', '--entry', 'tools.down'), {
    err: /^plugboard: http:\/\/127.0.0.1:9 cannot be reached/,
    code: 1,
  });
  t.match(await plugboard('accept', '--help'), { out: /^Usage: plugboard tools accept \[-c FILE\] \[--entry ENTRY\]/, code: 0 });
  write({});
  t.match(await plugboard('accept'), {
    err: /needs? .*|no plugin of plugboard.yaml provides it; install @plugboard\/tool-mcp/,
    code: 2,
  });
});
