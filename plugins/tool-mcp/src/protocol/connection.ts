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

const { version } = createRequire(import.meta.url)('@plugboard/tool-mcp/package.json') as { version: string };

/** The longest delay of a timer: callers set the limits, and the SDK wants one. */
const NO_LIMIT = 2 ** 31 - 1;

/** What is offered of a list of tools: their number, and characters of them as JSON. */
export const MAX_TOOLS = 1000;
export const MAX_LIST = 4 * 2 ** 20;
const MAX_PAGES = 1000;

interface ConnectionEvents {
  /** The transport has ended, for whatever reason. Called before running requests are rejected. */
  ended(): void;
  /** The server reports that its list of tools has changed. */
  toolsChanged(): void;
  /** The server violated the protocol without consequences: answered what was not sent. */
  violation(error: Error): void;
}

/** One MCP session over one transport, from `initialize` to its end. */
export class Connection {
  readonly transport: McpTransport;
  readonly #client = new Client({ name: 'plugboard', version });

  constructor(transport: McpTransport, events: ConnectionEvents) {
    this.transport = transport;
    this.#client.onclose = events.ended;
    this.#client.onerror = events.violation;
    this.#client.setNotificationHandler(ToolListChangedNotificationSchema, events.toolsChanged);
  }

  /** Opens the transport and initializes the session. */
  open(signal: AbortSignal): Promise<void> {
    return withOwnSignal(signal, (signal) => this.#client.connect(this.transport, { signal, timeout: NO_LIMIT }));
  }

  /** The name and version of the server, for logs. */
  get server(): string {
    const { name, version } = this.#client.getServerVersion() ?? { name: 'unknown', version: '' };
    return `${name} ${version}`.trim().slice(0, 200);
  }

  /**
   * Returns the entries of all pages of the server's list of tools, unchecked: as many as are
   * offered, and whether there are more (S-75).
   */
  async list(signal: AbortSignal): Promise<{ readonly listed: readonly unknown[]; readonly isCut: boolean }> {
    const listed: unknown[] = [];
    if (!this.#client.getServerCapabilities()?.tools) return { listed, isCut: false };
    let size = 0;
    let cursor: string | undefined;
    for (let pages = 1; pages <= MAX_PAGES; pages++) {
      const page = await this.#request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, signal);
      if (!Array.isArray(page.tools)) throw new Error('its list of tools is not an array');
      for (const tool of page.tools) {
        size += sizeOf(tool);
        if (listed.length >= MAX_TOOLS || size > MAX_LIST) return { listed, isCut: true };
        listed.push(tool);
      }
      if (typeof page.nextCursor !== 'string' || page.nextCursor === '') return { listed, isCut: false };
      cursor = page.nextCursor;
    }
    return { listed, isCut: true };
  }

  /** Calls a tool. If the call's signal is aborted, sends the server a cancellation. */
  call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    meta: Readonly<Record<string, unknown>>,
    call: ToolCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#request({ method: 'tools/call', params: { name, arguments: input, _meta: meta } }, call.signal, (progress) =>
      call.progress(...progressOf(progress)),
    );
  }

  /** Resolves when the server and everything it started have ended. */
  close(): Promise<void> {
    return this.transport.close();
  }

  /** Checks only that the answer is an object; the caller checks its content. */
  #request(request: ClientRequest, signal: AbortSignal, onprogress?: RequestOptions['onprogress']) {
    return withOwnSignal(signal, (signal) =>
      this.#client.request(request, ResultSchema, { signal, timeout: NO_LIMIT, ...(onprogress && { onprogress }) }),
    );
  }
}

/** The SDK never removes its listener from a signal, so each request gets its own signal. */
async function withOwnSignal<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
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

/** The unit of progress is the server's choice; the total and the message are optional. */
function progressOf({ progress, total, message }: Progress): [message: string, fraction?: number] {
  const counted = total === undefined ? `${progress}` : `${progress} of ${total}`;
  if (total === undefined || !(total > 0)) return [message ?? counted];
  return [message ?? counted, Math.min(1, Math.max(0, progress / total))];
}

/** Characters as JSON. What is nested too deeply to be written is larger than any list. */
function sizeOf(tool: unknown): number {
  try {
    return JSON.stringify(tool)?.length ?? 0;
  } catch {
    return MAX_LIST + 1;
  }
}
