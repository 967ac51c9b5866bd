import type { ToolCall } from '@plugboard/kernel';
import type { ToolList } from './tool-list.js';

/** What a connection reports. */
export interface ConnectionEvents {
  /** The server is away, for whatever reason. Called before running calls are rejected. */
  ended(): void;
  /** The server reports that its list of tools has changed. */
  toolsChanged(): void;
  /** The server violated the protocol without consequences: answered what was not sent. */
  violation(error: Error): void;
}

/**
 * A connection to one MCP server, over either transport.
 *
 * 1. `open` starts it. It is used for lists and calls until it ends.
 * 2. It ends once. `ending` then returns the reason, and `ended` is reported.
 * 3. `close` may be called at any time, repeatedly.
 */
export interface McpConnection {
  open(signal: AbortSignal): Promise<void>;
  /** The name and version of the server, for logs. */
  readonly server: string;
  list(signal: AbortSignal): Promise<ToolList>;
  /**
   * Calls a tool. If the call's signal is aborted, the call is cancelled at the server.
   * @throws McpServerError, or the error of the SDK for what the server refused.
   */
  call(
    name: string,
    input: Readonly<Record<string, unknown>>,
    meta: Readonly<Record<string, unknown>>,
    call: ToolCall,
  ): Promise<Readonly<Record<string, unknown>>>;
  /** Why it ended, as a clause. Undefined while it is in use. */
  ending(): string | undefined;
  /** Why it could not be opened, as a clause. @param isLate whether the time limit was reached. */
  failure(error: unknown, isLate: boolean): string;
  /** The last lines that the server printed, redacted. */
  lastLines(): readonly string[];
  /** Removes the secrets of the configuration from a text, because the server may repeat them. */
  redact(text: string): string;
  /** Resolves when everything that it started has ended. */
  close(): Promise<void>;
}
