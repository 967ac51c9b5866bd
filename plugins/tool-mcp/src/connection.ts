import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { RequestOptions } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  type ClientRequest,
  type Progress,
  ResultSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { ToolCall } from '@plugboard/kernel';
import type { McpTransport } from './mcp-transport.js';

const { version } = createRequire(import.meta.url)('../package.json') as { version: string };

/** The SDK ends every request after a time. Here that is the caller's business: this is the longest that a timer takes, 24 days. */
const NO_LIMIT = 2 ** 31 - 1;

export interface ConnectionEvents {
  /** The transport has ended, whoever ended it. Called before what was under way is told. */
  ended(): void;
  /** The server says that its list of tools is another one now. */
  toolsChanged(): void;
  /** Something that is wrong but harmless, such as an answer to what nobody asked. */
  oddity(error: Error): void;
}

/** One conversation with an MCP server, over one transport, from the greeting to the end. */
export class Connection {
  readonly transport: McpTransport;
  readonly #client = new Client({ name: 'plugboard', version });

  constructor(transport: McpTransport, events: ConnectionEvents) {
    this.transport = transport;
    this.#client.onclose = events.ended;
    this.#client.onerror = events.oddity;
    this.#client.setNotificationHandler(ToolListChangedNotificationSchema, events.toolsChanged);
  }

  /** Opens the transport and greets the server. */
  open(signal: AbortSignal): Promise<void> {
    return lent(signal, (signal) => this.#client.connect(this.transport, { signal, timeout: NO_LIMIT }));
  }

  /** What the server calls itself, for people. */
  get server(): string {
    const { name, version } = this.#client.getServerVersion() ?? { name: 'unknown', version: '' };
    return `${name} ${version}`.trim();
  }

  /** Everything on all pages of the server's list of tools, as it stands there. */
  async list(signal: AbortSignal): Promise<readonly unknown[]> {
    if (!this.#client.getServerCapabilities()?.tools) return [];
    let listed: readonly unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.#request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, signal);
      if (!Array.isArray(page.tools)) throw new Error('its list of tools is no list');
      listed = listed.concat(page.tools);
      cursor = typeof page.nextCursor === 'string' && page.nextCursor !== '' ? page.nextCursor : undefined;
    } while (cursor !== undefined);
    return listed;
  }

  /** Has a tool run. When the call's signal is aborted the server is told so. */
  call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    meta: Readonly<Record<string, unknown>>,
    call: ToolCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#request({ method: 'tools/call', params: { name, arguments: input, _meta: meta } }, call.signal, (progress) =>
      call.progress(...told(progress)),
    );
  }

  /** Resolves when nothing is left of the other side. */
  close(): Promise<void> {
    return this.transport.close();
  }

  /** The answer is checked for no more than that it is an object: what is in it is for the caller to check, gently. */
  #request(request: ClientRequest, signal: AbortSignal, onprogress?: RequestOptions['onprogress']) {
    return lent(signal, (signal) =>
      this.#client.request(request, ResultSchema, { signal, timeout: NO_LIMIT, ...(onprogress && { onprogress }) }),
    );
  }
}

/** The SDK never lets go of a signal that it was given, so it is lent one that ends with the work. */
async function lent<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const own = new AbortController();
  const abort = () => own.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await work(own.signal);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Servers may count in whatever they like, without an end in sight, and without words. */
function told({ progress, total, message }: Progress): [message: string, fraction?: number] {
  const counted = total === undefined ? `${progress}` : `${progress} of ${total}`;
  if (total === undefined || !(total > 0)) return [message ?? counted];
  return [message ?? counted, Math.min(1, Math.max(0, progress / total))];
}
