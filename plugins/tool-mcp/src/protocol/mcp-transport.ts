import type { Transport } from '@modelcontextprotocol/client';

/**
 * A connection to an MCP server: what MCP and its SDK call a transport.
 *
 * 1. `start` opens it. Messages of the server then arrive through `onmessage`.
 * 2. It ends once: because the server ended, because the transport gave up, or because of `close`.
 * 3. `ending` then returns the reason, and `onclose` is called. A transport that could not be
 *    opened has ended too.
 * 4. `close` may be called at any time, repeatedly. It resolves when everything the transport
 *    started has ended.
 */
export interface McpTransport extends Transport {
  /** The server's name in messages: `"npx"`. */
  readonly peer: string;
  /** Why it ended, as a clause: `"npx" exited with code 1`. Undefined while it is open. */
  ending(): string | undefined;
  /** The last lines the server printed, redacted. */
  lastLines(): readonly string[];
  /** Removes the secrets of the configuration from a text, because the server may repeat them. */
  redact(text: string): string;
}
