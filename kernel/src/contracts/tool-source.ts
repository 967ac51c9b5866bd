import { defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { Principal } from './principal.js';

/**
 * Something that offers tools: what stands under `tools` in the configuration. A clock offers one, an MCP server many.
 *
 * 1. Once the entry runs, the runtime asks for its tools, at the start of each turn that may use them: `tools` is cheap, and answers from what
 *    the source knows.
 * 2. An agent whose configuration names the entry may call them; the model is told of them under a name that the runtime makes.
 * 3. The arguments that the model writes are checked against `inputSchema` before `run` sees them.
 */
export interface ToolSource {
  /**
   * Whether the source by its nature offers exactly one tool: then the model knows that by the entry's name alone. Otherwise every tool is
   * known as `<entry>__<tool>`, also where it happens to be the only one.
   */
  readonly single: boolean;
  tools(signal: AbortSignal): Promise<readonly Tool[]> | readonly Tool[];
}

export const ToolSources = defineExtensionPoint<ToolSource>('agent.tool-source', { discipline: 'by-name' });

/**
 * One thing that a model may have done.
 *
 * 1. `run` is called with checked arguments, and a signal that is aborted when the turn ends early or the call's time is over. What it returns then is heard by
 *    nobody; one that has not ended five seconds later is left behind, with a line in the log.
 * 2. Several calls of one turn run at the same time.
 * 3. What `run` returns is told to the model. What it throws is told to the model as an error: the turn goes on, and the model may try otherwise.
 */
export interface Tool {
  readonly name: string;
  /** For the model: what it does, when to use it, what comes back. */
  readonly description: string;
  /** JSON Schema of the arguments; its type is `object`. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** What calling it twice would do: nothing (`read`), the same as once (`idempotent`), or something again (`write`). */
  readonly effect: 'read' | 'idempotent' | 'write';
  run(input: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolOutput> | ToolOutput;
}

/** Text for the model, or parts of several kinds. */
export type ToolOutput = string | ToolResultParts;

export interface ToolResultParts {
  readonly content: readonly ToolPart[];
  /** The tool itself says that it failed; `content` tells how. */
  readonly isError?: boolean;
}

export type ToolPart =
  | { readonly type: 'text'; readonly text: string }
  /** `data` is base64. */
  | { readonly type: 'image'; readonly mimeType: string; readonly data: string }
  /** What no model can take: the model is told of its kind and size. */
  | { readonly type: 'other'; readonly kind: string; readonly bytes: number };

/** What surrounds one call. Nothing here comes from the model. */
export interface ToolCall {
  /** Unique within the turn. */
  readonly id: string;
  readonly turnId: string;
  /**
   * Which call of the turn it is, from 0, calls for the caller's own tools counted. `turnId` and `index` together are unique for good: a tool that hands them on as
   * an idempotency key does a thing once, though it be asked twice.
   */
  readonly index: number;
  readonly agent: string;
  readonly principal: Principal;
  readonly signal: AbortSignal;
  /** Headers to send along, for example a trace's. */
  readonly headers: Readonly<Record<string, string>>;
  /** Tells whoever watches how far it is. `fraction` is from 0 to 1. */
  progress(message: string, fraction?: number): void;
}
