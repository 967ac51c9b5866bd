import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Tool, type ToolCall, ToolSources } from '@plugboard/kernel';
import type { ToolResultParts } from '@plugboard/kernel/contracts';
import { testContext, testToolCall } from '@plugboard/testing';
import type { Test } from 'tap';
import plugin from '../src/index.js';

/** A request as the API received it. */
export interface Received {
  readonly method: string;
  /** Path and query, as they came. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Answer = (response: ServerResponse, request: Received, raw: IncomingMessage) => void;

/** An API over real HTTP that keeps what it receives. By default it answers `ok`. */
export async function api(t: Pick<Test, 'teardown'>, answer: Answer = (response) => response.end('ok'), host = '127.0.0.1') {
  const requests: Received[] = [];
  const server = createServer(async (raw, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of raw) pieces.push(piece);
    const { method = '', url = '', headers } = raw;
    const received = { method, url, headers, body: Buffer.concat(pieces).toString() };
    requests.push(received);
    answer(response, received, raw);
  });
  await once(server.listen(0, host), 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://${host}:${port}`, requests: requests as readonly Received[], server };
}

/** A document with these paths. */
export function documentOf(paths: object, others: object = {}) {
  return { openapi: '3.1.0', info: { title: 'Shop', version: '1' }, paths, ...others };
}

/** A folder with files, which is removed after the test. */
export function folderWith(t: Pick<Test, 'teardown'>, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'tool-http-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** An entry `tools.shop` over a document. */
export function entry(t: Pick<Test, 'teardown'>, document: object | string, config: object = {}) {
  const text = typeof document === 'string' ? document : JSON.stringify(document);
  const folder = folderWith(t, { 'shop.yaml': text });
  const context = testContext(plugin, { config: { openapi: './shop.yaml', ...config }, entry: 'tools.shop', folder });
  const source = context.contributed(ToolSources);
  const tools = () => source.tools(new AbortController().signal) as readonly Tool[];
  const tool = (name: string): Tool => {
    const found = tools().find((tool) => tool.name === name);
    if (!found) throw new Error(`there is no tool ${name}, but ${tools().map(({ name }) => name)}`);
    return found;
  };
  const call = async (name: string, input: Record<string, unknown> = {}, overrides: Partial<ToolCall> = {}) =>
    tool(name).run(input, { ...testToolCall(), ...overrides });
  return {
    source,
    logs: context.logs,
    lifecycle: context.lifecycle,
    names: () => tools().map(({ name }) => name),
    tool,
    call,
    /** The arguments of a tool, as the model sees them. */
    properties: (name: string) => tool(name).inputSchema.properties as Record<string, Record<string, unknown>>,
    required: (name: string) => tool(name).inputSchema.required as readonly string[] | undefined,
    /** Starts the entry, and returns what the log then says of skipped operations. */
    skipped: async () => {
      await context.lifecycle.start?.(new AbortController().signal);
      return context.logs.filter(({ msg }) => /skipped/.test(msg)).map(({ operation, msg }) => `${String(operation)}: ${msg}`);
    },
  };
}

/** The text of a result, with `error: ` before that of an error. */
export function textOf(result: unknown): string {
  if (typeof result === 'string') return result;
  const { content, isError } = result as ToolResultParts;
  const texts = content.map((part) => (part.type === 'text' ? part.text : JSON.stringify(part)));
  return `${isError ? 'error: ' : ''}${texts.join('\n')}`;
}
