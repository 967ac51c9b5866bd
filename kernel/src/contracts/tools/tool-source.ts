import type { Infer } from '../../host/options/schema-types.js';
import { defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { Principal } from '../callers/principal.js';

/**
 * A source of tools: an entry under `tools` in the configuration. A clock offers one tool, an MCP
 * server many. Discipline: by name.
 *
 * 1. The runtime calls `tools` at the start of each turn that may use them, so `tools` must be
 *    cheap and answer from memory. Before the start, it returns all tools or none.
 * 2. Agents whose configuration names the entry may call them. The runtime chooses their names at
 *    the model.
 * 3. Arguments are validated against `inputSchema` before `run` receives them.
 * 4. While nothing has changed, `tools` returns the same tools in the same order, so that the
 *    model's prompt stays the same.
 *
 * @public
 */
export interface ToolSource {
  /**
   * Whether the source always offers exactly one tool, which the model then knows by the entry's
   * name. Otherwise every tool is named `<entry>__<tool>`, even if there happens to be only one.
   * By default false.
   */
  readonly single?: boolean;
  /** The time limit of a call where the file sets none, such as `60s`, which it is without this. */
  readonly timeout?: string;
  /** The agent that its tool asks, if its tool is an agent (`TurnRequest.parent`). */
  readonly asks?: {
    readonly agent: string;
    /** Levels of turns below the first one that may exist: below, the tool is not offered. */
    readonly depth: number;
    /** Whether the file sets `depth`. Agents that ask each other in a circle need that once. */
    readonly setsDepth: boolean;
    /** Calls of the entry that run at once in the turns below one turn. Further ones wait. */
    readonly maxChildren: number;
  };
  tools(signal: AbortSignal): Promise<readonly Tool[]> | readonly Tool[];
}

/** The extension point of tools: `agent.tool-source`, by the name of the entry. @public */
export const ToolSources = defineExtensionPoint<ToolSource>('agent.tool-source', {
  discipline: 'by-name',
  shape: { 'single?': 'boolean', 'timeout?': 'string', 'asks?': 'object', tools: 'function' },
  describe: (source) => countOf(source).map((tools) => ({ kind: 'detail', label: 'tools', text: String(tools) })),
});

/** How many tools a source has: nothing if it has one, or knows none before the server starts. */
function countOf(source: ToolSource): readonly number[] {
  try {
    const tools = source.single ? [] : source.tools(AbortSignal.abort());
    if (tools instanceof Promise) tools.catch(() => {}); // a listing waits for nothing
    return Array.isArray(tools) && tools.length > 0 ? [tools.length] : [];
  } catch {
    return []; // reported where the tools are used
  }
}

/**
 * A tool that a model may call.
 *
 * 1. `run` receives validated arguments and a signal, which aborts when the turn ends early or the
 *    call times out. After that its result is discarded. A call still running five seconds later is
 *    abandoned and logged.
 * 2. Calls of one step run at the same time.
 * 3. The model receives what `run` returns. If `run` throws, the model receives the error message,
 *    and the turn continues.
 * 4. `run` does not change its arguments.
 * 5. A call whose answer is lost may have taken effect: its time is over, or `run` throws an error
 *    with the property `effect: 'unknown'`, or the process dies and the session goes on later. It
 *    is settled by `verify`, or else run once more if it is `read`, `idempotent` or `keyed`. Of any
 *    other one, the model is told that its effect is unknown.
 *
 * @public
 */
export interface Tool {
  /** Unique within the source. */
  readonly name: string;
  /** For the model: what the tool does, when to use it, what it returns. */
  readonly description: string;
  /** JSON Schema of the arguments, of type `object`. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /**
   * The effect of a second call: none (`read`), the same as one call (`idempotent`), or a second
   * effect (`write`). By default `write`.
   */
  readonly effect?: 'read' | 'idempotent' | 'write';
  /**
   * Whether a second call with the same key (`<turnId>/<index>`) has no second effect and gets the
   * answer of the first, because `run` passes the key on. By default false.
   */
  readonly keyed?: boolean;
  /**
   * Finds out what became of a call whose answer was lost. The first one may still be under way.
   *
   * @param key `<turnId>/<index>` of the call.
   * @returns its result, or undefined if it has not taken effect and never will: it is then run.
   * @throws any error if that cannot be found out. The effect is then unknown.
   */
  verify?(key: string, call: ToolCall): Promise<ToolOutput | undefined> | ToolOutput | undefined;
  run(input: Readonly<Record<string, unknown>>, call: ToolCall): Promise<ToolOutput> | ToolOutput;
}

/** A tool whose `run` is typed by its `inputSchema`. @public */
export interface ToolDefinition<S extends Readonly<Record<string, unknown>>> extends Omit<Tool, 'inputSchema' | 'run'> {
  /** JSON Schema of the arguments, of type `object`. */
  readonly inputSchema: S;
  /** @param input the arguments, which match `inputSchema`. Its defaults are filled in. */
  run(input: Infer<S>, call: ToolCall): Promise<ToolOutput> | ToolOutput;
}

/**
 * Defines a tool. The type of its arguments follows from `inputSchema`:
 *
 * ```ts
 * const roll = defineTool({
 *   name: 'roll',
 *   description: 'Rolls a die.',
 *   inputSchema: { type: 'object', properties: { sides: { type: 'integer', default: 6 } } },
 *   run: ({ sides }) => String(1 + Math.floor(Math.random() * sides)),
 * });
 * ```
 *
 * @public
 */
export function defineTool<const S extends Readonly<Record<string, unknown>>>(tool: ToolDefinition<S>): Tool {
  return tool as ToolDefinition<S> & Tool; // `run` is called with validated arguments only
}

/** Text for the model, or parts of several types. @public */
export type ToolOutput = string | ToolResultParts;

/** A tool's result in parts of several types, or a failure with its explanation. @public */
export interface ToolResultParts {
  readonly content: readonly ToolPart[];
  /** The tool failed; `content` says how. */
  readonly isError?: boolean;
}

/** A part of a tool's result. @public */
export type ToolPart =
  | { readonly type: 'text'; readonly text: string }
  /** `data` is base64. */
  | { readonly type: 'image'; readonly mimeType: string; readonly data: string }
  /** Content that no model accepts. The model receives its kind and size. */
  | { readonly type: 'other'; readonly kind: string; readonly bytes: number };

/** The context of one call. @public */
export interface ToolCall {
  /** Unique within the turn. */
  readonly id: string;
  readonly turnId: string;
  /**
   * Number of the call in the turn, from 0, counting client tool calls. `turnId` and `index`
   * together are globally unique: a tool can pass them on as an idempotency key.
   */
  readonly index: number;
  readonly agent: string;
  readonly principal: Principal;
  /** `api:<key>` if the turn belongs to a session. */
  readonly session: string | undefined;
  readonly requestId: string;
  /** Metadata of the request. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Headers for outgoing requests, for example of a trace. */
  readonly headers: Readonly<Record<string, string>>;
  /** Reports progress to the readers of the turn. `fraction` is from 0 to 1. */
  progress(message: string, fraction?: number): void;
}
