import { Client, type Request, type RequestOptions } from '@modelcontextprotocol/client';
import type { ToolCall } from '@plugboard/kernel';
import { noAnswerInTime, otherProtocol } from '../errors/errors.js';
import { ANY_RESULT } from '../protocol/any-result.js';
import { CLIENT, NO_LIMIT, serverOf } from '../protocol/client-info.js';
import type { ConnectionEvents, McpConnection } from '../protocol/mcp-connection.js';
import { withOwnSignal } from '../protocol/own-signal.js';
import { progressOf } from '../protocol/progress.js';
import { readList, type ToolList } from '../protocol/tool-list.js';
import type { ChildProcessTransport } from './child-process-transport.js';

/** A server that runs as a child process: one session, from `initialize` to its end. */
export class ProcessConnection implements McpConnection {
  readonly #transport: ChildProcessTransport;
  readonly #client = new Client(CLIENT);

  constructor(transport: ChildProcessTransport, events: ConnectionEvents) {
    this.#transport = transport;
    this.#client.onclose = events.ended;
    this.#client.onerror = events.violation;
    this.#client.setNotificationHandler('notifications/tools/list_changed', () => events.toolsChanged());
  }

  /** Opens the transport and initializes the session. */
  open(signal: AbortSignal): Promise<void> {
    return withOwnSignal(signal, (signal) => this.#client.connect(this.#transport, { signal, timeout: NO_LIMIT }));
  }

  get server(): string {
    return serverOf(this.#client);
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
