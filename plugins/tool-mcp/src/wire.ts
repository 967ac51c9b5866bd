import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';

/**
 * A way to an MCP server. MCP and its SDK call this a transport, a word that stands for something else in Plugboard.
 *
 * 1. `start` opens it; from then on what the server says comes through `onmessage`.
 * 2. It ends once: because the other side went away, because the wire gave it up, or because of `close`.
 * 3. `ending` then says how, and `onclose` is called. A wire that could not be opened has ended too.
 * 4. `close` may be called at any time and any number of times. It resolves when nothing is left of what the wire started.
 */
export interface Wire extends Transport {
  /** What is at the other end, for people: `"npx"`. */
  readonly peer: string;
  /** How it ended, as a clause about the other side: `"npx" exited with code 1`. Undefined while it has not. */
  ending(): string | undefined;
  /** What the other side printed last, for people who look for a cause; redacted. */
  lastLines(): readonly string[];
  /** The text without what is secret in the wire's configuration: the other side may repeat what it was given. */
  redact(text: string): string;
}
