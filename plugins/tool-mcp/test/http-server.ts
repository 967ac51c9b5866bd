import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { eventually } from '@plugboard/testing';
import type { Test } from 'tap';

type Json = Readonly<Record<string, unknown>>;

/** The two protocols called MCP: with sessions (2025-11-25), and without (2026-07-28). */
export type Era = 'old' | 'new';
export const ERAS: readonly Era[] = ['old', 'new'];

/** A message as the server received it. */
export interface Received {
  readonly http: string;
  readonly headers: IncomingMessage['headers'];
  readonly id: number | string | undefined;
  readonly method: string;
  readonly params: Json;
}

/** A call of a tool, which the test answers. */
export interface Call extends Received {
  readonly response: ServerResponse;
  /** Answers as JSON. */
  answer(result: Json): void;
  /** Opens a stream. Returns what writes a message to it; the stream stays open. */
  stream(): (message: Json) => void;
}

const META = 'io.modelcontextprotocol/';
const TEXT = (text: string) => ({ content: [{ type: 'text', text }] });

/** The answers of tools that every server has. */
const TOOLS: Readonly<Record<string, (call: Call) => void>> = {
  echo: (call) => call.answer(TEXT(JSON.stringify(call.params.arguments))),
  write: (call) => call.answer(TEXT('written')),
};

/**
 * A real HTTP server that speaks MCP in one era, and refuses what does not follow it: unknown
 * sessions, missing or wrong headers. It records what it received.
 */
export async function mcpServer(t: Pick<Test, 'teardown'>, era: Era) {
  const received: Received[] = [];
  const sessions = new Set<string>();
  /** Streams for what the server says unasked. */
  const streams = new Set<(message: Json) => void>();
  const sockets = new Set<ServerResponse>();
  const server = createServer((request, response) => void handle(request, response));
  const tool = (name: string, extra: Json = {}): Json => ({ name, inputSchema: { type: 'object' }, ...extra });
  const scripted = {
    /** May change: the server is replaced by another one. */
    era,
    received,
    streams,
    sessions,
    /** The list of tools, and how many are on one page. */
    list: [tool('echo', { annotations: { readOnlyHint: true } }), tool('write')] as Json[],
    pageSize: 100,
    ttlMs: 0,
    tools: { ...TOOLS } as Record<string, (call: Call) => void>,
    tool,
    /** Looks at each request first. Returns whether it was answered. */
    intercept: (_message: Received, _response: ServerResponse): boolean => false,
    url: '',
    /** What was received of a method. */
    of: (method: string) => received.filter((message) => message.method === method),
    /** Ends all streams, as a proxy does. */
    cut: () => {
      for (const response of sockets) response.destroy();
    },
    /** Says something unasked. */
    say: async (message: Json) => {
      await eventually(() => streams.size > 0);
      for (const write of streams) write(message);
    },
    changed: () => scripted.say({ method: 'notifications/tools/list_changed' }),
    async listen(port = 0) {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      scripted.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
    },
    /** Takes no new connections. */
    refuse: () => void server.close(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function handle(request: IncomingMessage, response: ServerResponse) {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece);
    const body = pieces.length === 0 ? {} : JSON.parse(Buffer.concat(pieces).toString());
    const { method: http = '', headers } = request;
    const { id, method = '', params = {} } = body;
    const message = { http, headers, id, method: method === '' ? http : method, params };
    received.push(message);
    if (scripted.intercept(message, response)) return;
    if (http === 'POST' && method === '') return void response.writeHead(202).end(); // an answer
    if (scripted.era === 'old') old(message, response);
    else recent(message, response);
  }

  function old(message: Received, response: ServerResponse) {
    const { http, headers, id, method } = message;
    const session = String(headers['mcp-session-id'] ?? '');
    if (method === 'initialize') {
      const opened = `session-${sessions.size + 1}-${received.length}`;
      sessions.add(opened);
      response.setHeader('mcp-session-id', opened);
      const capabilities = { tools: { listChanged: true } };
      return json(response, 200, {
        id,
        result: { protocolVersion: '2025-11-25', capabilities, serverInfo: { name: 'old', version: '1' } },
      });
    }
    if (session === '') return json(response, 400, { id, error: { code: -32000, message: 'Bad Request: no session' } });
    if (!sessions.has(session)) return json(response, 404, { id, error: { code: -32001, message: 'Session not found' } });
    if (headers['mcp-protocol-version'] !== '2025-11-25')
      return json(response, 400, { id, error: { code: -32000, message: 'no version' } });
    if (http === 'DELETE') return void response.writeHead(204).end();
    if (http === 'GET') return void streams.add(open(response));
    if (id === undefined) return void response.writeHead(202).end();
    serve(message, response, (result) => result);
  }

  function recent(message: Received, response: ServerResponse) {
    const { http, headers, id, method, params } = message;
    const refuse = (code: number, text: string) => json(response, 400, { id, error: { code, message: text } });
    if (http !== 'POST') return void response.writeHead(405).end();
    if (headers['mcp-session-id'] !== undefined) return refuse(-32600, 'there are no sessions');
    if (method.startsWith('notifications/')) return void response.writeHead(202).end();
    const version = (params._meta as Json | undefined)?.[`${META}protocolVersion`];
    if (headers['mcp-protocol-version'] !== '2026-07-28' || version !== '2026-07-28') return refuse(-32600, 'no version');
    if (headers['mcp-method'] !== method) return refuse(-32020, 'Mcp-Method does not match');
    if (params.name !== undefined && decoded(headers['mcp-name']) !== params.name)
      return refuse(-32020, 'Mcp-Name does not match');
    const complete = (result: Json) => ({ resultType: 'complete', ...result });
    if (method === 'server/discover') {
      const capabilities = { tools: { listChanged: true } };
      const result = { supportedVersions: ['2026-07-28'], capabilities, ttlMs: 0, cacheScope: 'private' };
      return json(response, 200, {
        id,
        result: complete({ ...result, _meta: { [`${META}serverInfo`]: { name: 'new', version: '1' } } }),
      });
    }
    if (method === 'subscriptions/listen') {
      const write = open(response);
      streams.add(write);
      response.once('close', () => streams.delete(write));
      const _meta = { [`${META}subscriptionId`]: id };
      return write({
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications: params.notifications, _meta },
      });
    }
    serve(message, response, complete);
  }

  function serve(message: Received, response: ServerResponse, complete: (result: Json) => Json) {
    const { id, method, params } = message;
    if (method === 'tools/list') {
      const from = Number(params.cursor ?? 0);
      const to = from + scripted.pageSize;
      const nextCursor = to < scripted.list.length ? { nextCursor: String(to) } : {};
      const cache = scripted.era === 'new' ? { ttlMs: scripted.ttlMs, cacheScope: 'private' } : {};
      return json(response, 200, { id, result: complete({ tools: scripted.list.slice(from, to), ...nextCursor, ...cache }) });
    }
    const run = scripted.tools[String(params.name)];
    if (method !== 'tools/call' || !run) return json(response, 200, { id, error: { code: -32601, message: 'Method not found' } });
    run({
      ...message,
      response,
      answer: (result) => json(response, 200, { id, result: result.resultType === undefined ? complete(result) : result }),
      stream: () => open(response),
    });
  }

  function open(response: ServerResponse): (message: Json) => void {
    sockets.add(response);
    response.once('close', () => sockets.delete(response));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(': a comment\n\n');
    const write = (message: Json) => void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    response.once('close', () => streams.delete(write));
    return write;
  }

  await scripted.listen();
  t.teardown(() => scripted.close().catch(() => {}));
  return scripted;
}

export type McpServer = Awaited<ReturnType<typeof mcpServer>>;

function json(response: ServerResponse, status: number, message: Json): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

/** A value of a header of SEP-2243. */
export function decoded(value: string | readonly string[] | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [, base64] = /^=\?base64\?(.*)\?=$/.exec(value) ?? [];
  return base64 === undefined ? value : Buffer.from(base64, 'base64').toString();
}
