/**
 * What a turn leaves in the old generation of the heap, where it stays until a full collection: a
 * server that answers fast would grow to several times what it needs.
 *
 * V8 puts a function that is assigned to a property, and the hidden class of a literal with an
 * accessor, there at once. Each keeps the variables that it uses, and so the whole turn.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import ts from 'typescript';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { ASSISTANT } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

const ROOT = join(import.meta.dirname, '../../..');
const KIB = 1024;
const TURNS = 160;
const ROUNDS = 5;

const said = [{ role: 'user', content: 'Hello' }];
const KINDS = {
  'a JSON turn': ['/v1/chat/completions', { model: 'assistant', messages: said }],
  'a stream': ['/v1/chat/completions', { model: 'assistant', messages: said, stream: true }],
  'a stream of the Messages API': ['/v1/messages', { model: 'assistant', max_tokens: 1_000, messages: said, stream: true }],
} as const;

// On a machine that does something else, 4,000 turns take a minute or more.
t.setTimeout(280_000);

t.test('at most 1 KiB of a turn outlives collections of the young generation', async (t) => {
  const yaml = `${LIVE_TRANSPORTS}  messages: {}\n${ASSISTANT}`;
  const server = await ServerProcess.start(t, { yaml, collectsGarbage: 'young' });
  server.models.respond(() => ({ text: Array.from({ length: 50 }, (_, at) => `token ${at} `) }));
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  t.teardown(() => agent.destroy());
  const post = (path: string, body: object) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(server.url + path, { agent, method: 'POST', headers: { 'content-type': 'application/json' } });
      sent.once('error', reject);
      sent.once('response', (reply) => reply.resume().once('end', () => resolve(reply.statusCode)));
      sent.end(JSON.stringify(body));
    });
  const heap = async () => (await server.status()).memory.heap_used;
  for (const [kind, [path, body]] of Object.entries(KINDS)) {
    const run = async (turns: number) => {
      for (let at = 0; at < turns; at += 4) {
        const statuses = await Promise.all(Array.from({ length: 4 }, () => post(path, body)));
        if (statuses.some((status) => status !== 200)) throw new Error(`${kind} was answered with ${statuses}`);
      }
    };
    await run(4 * TURNS); // V8 compiles meanwhile
    const left: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const before = await heap();
      await run(TURNS);
      left.push(Math.round(((await heap()) - before) / TURNS));
    }
    t.comment(`${kind} leaves ${left.join(', ')} bytes`);
    // A full collection within a round leaves less than nothing, and a slow round what time leaves.
    t.ok((left.toSorted((a, b) => a - b)[1] ?? 0) <= KIB, kind);
  }
});

t.test('no function of a turn is assigned to a property, and no literal has an accessor', (t) => {
  const list = execFileSync('git', ['ls-files', 'plugins/*/src/**.ts', 'kernel/src/**.ts'], { cwd: ROOT, encoding: 'utf8' });
  const files = list.split('\n').filter((file) => file !== '' && !/^plugins\/(testing|cli)\//.test(file));
  t.ok(files.length > 500);
  const found = files.flatMap((file) => longLived(file, readFileSync(join(ROOT, file), 'utf8')));
  // Made once for each entry, with each report of the entries, and each time the server stops.
  t.strictSame(found, [
    'kernel/src/host/lifecycle/status-board.ts: get health',
    'kernel/src/host/registration/register.ts: get state',
    // The client of an MCP server has these properties for its whole session.
    'plugins/tool-mcp/src/http/http-session.ts: this.client.onerror',
    'plugins/tool-mcp/src/http/http-transport.ts: this.#inner.onclose',
    'plugins/tool-mcp/src/http/http-transport.ts: this.#inner.onerror',
    'plugins/tool-mcp/src/http/http-transport.ts: this.#inner.onmessage',
    'plugins/transport-http/src/exchange/exchanges.ts: this.#onIdle',
  ]);
  t.end();
});

/** Functions assigned to properties, and accessors of literals, within the functions of a file. */
function longLived(file: string, text: string): readonly string[] {
  if (!/\.#?\w+ (\?\?)?= (async )?(\(|\w+ =>|function)|^\s+[gs]et \w+\(/m.test(text)) return [];
  const found: string[] = [];
  const visit = (node: ts.Node, isInFunction: boolean): void => {
    const isInside = isInFunction || ts.isFunctionLike(node);
    if (isInside && ts.isObjectLiteralExpression(node)) {
      for (const one of node.properties) if (ts.isGetAccessor(one)) found.push(`${file}: get ${one.name.getText()}`);
    }
    if (isInFunction && ts.isBinaryExpression(node) && ts.isPropertyAccessExpression(node.left)) {
      const { operatorToken, left, right } = node;
      const isFunction = ts.isArrowFunction(right) || ts.isFunctionExpression(right);
      if (isFunction && isAssignment(operatorToken)) found.push(`${file}: ${left.getText()}`);
    }
    node.forEachChild((child) => visit(child, isInside));
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true), false);
  return found;
}

function isAssignment({ kind }: ts.Node): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment;
}
