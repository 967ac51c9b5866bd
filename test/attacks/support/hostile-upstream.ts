/**
 * What a server asks on behalf of its callers, and answers with too much: model servers, servers of
 * images, and a process that speaks MCP. It imports nothing of the repository, so that `table.mjs`
 * can load it as it is.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createGzip } from 'node:zlib';

const MIB = 2 ** 20;
const FILL = Buffer.alloc(65_536, 'x');
/** The beginning of an image, whose rest is never looked at. */
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const IMAGE = Buffer.concat([PNG, Buffer.alloc(9 * MIB)]);

function endless(to: NodeJS.WritableStream, response: ServerResponse): void {
  while (!response.destroyed && to.write(FILL));
  if (!response.destroyed) to.once('drain', () => endless(to, response));
}

/** By the first part of the path: the base URL of a model connection. */
const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  event: (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"a":"');
    endless(response, response);
  },
  error: (response) => {
    response.writeHead(400, { 'content-type': 'application/json' }).write('{"error":{"message":"');
    endless(response, response);
  },
  compressed: (response) => {
    const gzip = createGzip();
    gzip.pipe(response.writeHead(200, { 'content-type': 'text/event-stream', 'content-encoding': 'gzip' }));
    gzip.write('data: {"a":"');
    endless(gzip, response);
  },
  html: (response) => {
    response.writeHead(502, { 'content-type': 'text/html' });
    response.end('<title '.repeat(9_000));
  },
  image: (response) => response.writeHead(200, { 'content-type': 'image/png' }).end(IMAGE),
  silent: () => {},
};

/** Starts one. `asked` counts its requests by the first part of their paths. */
export async function startHostileUpstream() {
  const asked: Record<string, number> = {};
  const http = createServer((request, response) => {
    const [, kind = ''] = (request.url ?? '').split('/');
    asked[kind] = (asked[kind] ?? 0) + 1;
    response.on('error', () => {});
    request.resume().on('end', () => ANSWERS[kind]?.(response));
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  return {
    asked,
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    close() {
      http.close();
      http.closeAllConnections();
    },
  };
}

/** Connections to it, and an agent for each, for `models` and `agents`. */
export function hostileEntries(project: string): { readonly models: string; readonly agents: string } {
  const kinds = ['event', 'error', 'compressed', 'html'];
  const options = 'model: m, apiKey: x';
  return {
    models: [
      ...kinds.map(
        (kind) =>
          `  ${kind}-model: { use: ai-sdk, provider: "@ai-sdk/anthropic", baseUrl: "\${HOSTILE_URL}/${kind}", ${options} }`,
      ),
      `  seeing-model: { use: ai-sdk, provider: "@ai-sdk/google", baseUrl: "\${HOSTILE_URL}/silent", allowPrivate: true,`,
      `    ${options} }\n`,
    ].join('\n'),
    agents: [...kinds, 'seeing'].map((name) => `  ${name}: { model: ${name}-model, project: ${project} }\n`).join(''),
  };
}

/** A message with this many images by their address. */
export function imagesAt(url: string, count: number, prefix: string) {
  const image = (at: number) => ({ type: 'image_url', image_url: { url: `${url}/image/${prefix}${at}.png` } });
  return { role: 'user', content: Array.from({ length: count }, (_, at) => image(at)) };
}

/** An MCP server: a list of 60,000 tools, results of 100 MiB, and 500 reports of 100 KB. */
export const HOSTILE_MCP = `
  import { createInterface } from 'node:readline';
  import { writeSync } from 'node:fs';
  const write = (text) => {
    for (let rest = Buffer.from(text); rest.length > 0; ) {
      try { rest = rest.subarray(writeSync(1, rest)); } catch (error) { if (error.code !== 'EAGAIN') throw error; }
    }
  };
  const say = (message) => write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const inputSchema = { type: 'object' };
  const tool = (name) => ({ name, inputSchema, annotations: { readOnlyHint: true } });
  const tools = ['large', 'reports', ...Array.from({ length: 60_000 }, (_, at) => 'tool_' + at)].map(tool);
  const fill = 'x'.repeat(2 ** 20);
  for await (const line of createInterface({ input: process.stdin })) {
    const { id, method, params } = JSON.parse(line);
    if (method === 'initialize')
      say({
        id,
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'h', version: '1' },
        },
      });
    else if (method === 'tools/list') say({ id, result: { tools } });
    else if (method === 'tools/call' && params.name === 'large') {
      write('{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[{"type":"text","text":"');
      for (let n = 0; n < 100; n++) write(fill);
      write('"}]}}\\n');
    } else if (method === 'tools/call') {
      const message = fill.slice(0, 100_000);
      const progressToken = params._meta?.progressToken;
      for (let progress = 1; progress <= 500; progress++) {
        say({ method: 'notifications/progress', params: { progressToken, progress, message } });
      }
      say({ id, result: { content: [{ type: 'text', text: 'done' }] } });
    }
  }
`;
