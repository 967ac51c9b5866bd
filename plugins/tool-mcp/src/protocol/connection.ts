import { Client, type Request, type RequestOptions } from '@modelcontextprotocol/client';
import type { ToolCall } from '@plugboard/kernel';
import { noAnswerInTime, otherProtocol } from '../errors/errors.js';
import { ANY_RESULT } from './any-result.js';
import { CLIENT, NO_LIMIT } from './client-info.js';
import type { ConnectionEvents, McpConnection } from './mcp-connection.js';
import type { McpTransport } from './mcp-transport.js';
import { withOwnSignal } from './own-signal.js';
import { progressOf } from './progress.js';
import { readList, type ToolList } from './tool-list.js';

/** One MCP session over one transport, from `initialize` to its end. */
export class Connection implements McpConnection {
  readonly #transport: McpTransport;
  readonly #client = new Client(CLIENT);

  constructor(transport: McpTransport, events: ConnectionEvents) {
    this.#transport = transport;
    this.#client.onclose = events.ended;
    this.#client.onerror = events.violation;
    this.#client.setNotificationHandler('notifications/tools/list_changed', () => events.toolsChanged());
  }

  /** Opens the transport and initializes the session. */
  open(signal: AbortSignal): Promise<void> {
    return withOwnSignal(signal, (signal) => this.#client.connect(this.#transport, { signal, timeout: NO_LIMIT }));
  }

  /** The name and version of the server, for logs. */
  get server(): string {
    const { name, version } = this.#client.getServerVersion() ?? { name: 'unknown', version: '' };
    return `${name} ${version}`.trim().slice(0, 200);
  }

  async list(signal: AbortSignal): Promise<ToolList> {
    if (!this.#client.getServerCapabilities()?.tools) return { listed: [], isCut: false };
    return readList((cursor) => this.#request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }, signal));
  }

  call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    meta: Readonly<Record<string, unknown>>,
    call: ToolCall,
  ): Promise<Readonly<Record<string, unknown>>> {
    return this.#request(
      { method: 'tools/call', params: { name, arguments: input, _meta: { ...meta } } },
      call.signal,
      (progress) => call.progress(...progressOf(progress)),
    );
  }

  ending(): string | undefined {
    return this.#transport.ending();
  }

  failure(error: unknown, isLate: boolean): string {
    const { peer } = this.#transport;
    return this.ending() ?? (isLate ? noAnswerInTime(peer) : otherProtocol(peer, error));
  }

  lastLines(): readonly string[] {
    return this.#transport.lastLines();
  }

  redact(text: string): string {
    return this.#transport.redact(text);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #request(request: Request, signal: AbortSignal, onprogress?: RequestOptions['onprogress']) {
    return withOwnSignal(signal, (signal) =>
      this.#client.request(request, ANY_RESULT, { signal, timeout: NO_LIMIT, ...(onprogress && { onprogress }) }),
    );
  }
}
