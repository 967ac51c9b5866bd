import { type Description, defineExtensionPoint } from '../host/plugin/extension-point.js';
import type { Message } from './message.js';
import type { Usage } from './usage.js';

/**
 * A connection to one model: what stands under `models` in the configuration.
 *
 * 1. The agent loop calls `stream` once for each step of a turn.
 * 2. The connector yields batches: the events that one read of the model's socket brought. `[event]` is a batch too.
 * 3. The last event is `end`, and exactly one; a stream that stops without it was cut off, and the turn fails.
 * 4. What goes wrong is thrown as a `ModelError`, which says whether trying again may help. Whoever calls decides; a connector
 *    itself never tries twice.
 * 5. When the signal is aborted the connector lets go of its socket at once and throws.
 * 6. A reader that does not pull is slow: the connector then stops reading its socket.
 */
export interface ModelConnector {
  /** What the model server calls the model; shown to operators. */
  readonly model: string;
  /** Tokens that fit into one request and its answer together. */
  readonly contextWindow: number;
  /** What a user message may hold: `text` always, `image` where the model sees. */
  readonly input: readonly ('text' | 'image')[];
  /** Whether the connection takes a sampling parameter (by its name on the wire, for example `top_p`). What it does not take is left out of its requests. */
  supportsParam(param: string): boolean;
  /** Facts for `plugboard plugins`: `{ kind: 'detail', label: 'provider', text: 'openai' }`. */
  describe?(): readonly Description[];
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<readonly ModelEvent[]>;
}

export const ModelConnectors = defineExtensionPoint<ModelConnector>('agent.model-connector', {
  discipline: 'by-name',
  describe: (connector) => connector.describe?.() ?? [],
});

export interface ModelRequest {
  readonly messages: readonly Message[];
  /** The tools that the model may call, in a stable order. Empty: none are declared. */
  readonly tools: readonly ToolDeclaration[];
  /** Sampling parameters by their names on the wire, `tool_choice` included; only such as the connection takes. */
  readonly params: Readonly<Record<string, unknown>>;
  /**
   * Whether anyone reads the answer as it is written. Where nobody does, a connector may ask for it whole, which costs less.
   */
  readonly incremental: boolean;
  /** Headers to send along, for example a trace's. A listener of the `plugboard.step` channel may add some before the request is made. */
  readonly headers: Record<string, string>;
}

/** A tool as the model is told of it. */
export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Declarations of a caller may ask for strict arguments. */
  readonly strict?: boolean;
}

export type ModelEvent = ModelText | ModelReasoning | ModelToolCall | ModelUsage | ModelEnd;

export interface ModelText {
  readonly type: 'text';
  readonly text: string;
  /**
   * The same text as it stands between the quotes of a JSON string, where the connector has it at hand: an encoder of JSON then writes it
   * through. `JSON.parse('"' + json + '"')` must be `text`.
   */
  readonly json?: string | undefined;
}

/** What a model thinks before it speaks. Shown apart from the answer, and no part of it. */
export interface ModelReasoning {
  readonly type: 'reasoning';
  readonly text: string;
}

/** A whole tool call: its arguments are complete. */
export interface ModelToolCall {
  readonly type: 'tool-call';
  /** The model server's id of the call; one is made up where it has none. */
  readonly id: string;
  readonly name: string;
  /** JSON text, as the model wrote it, checked by nobody yet. */
  readonly arguments: string;
}

export interface ModelUsage {
  readonly type: 'usage';
  readonly usage: Usage;
}

export interface ModelEnd {
  readonly type: 'end';
  /** Why the model stopped, in the protocol's words. */
  readonly reason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
}

/** What a connector throws when the model server cannot be asked, or does not answer as it should. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  /** Whether the same request may succeed if it is made again a little later. */
  readonly retryable: boolean;
  /** How long the model server asked to wait before that, in milliseconds. */
  readonly retryAfter: number | undefined;

  /** @param message for the caller: names what happened; no key, no address of the model server. */
  constructor(message: string, options: { retryable: boolean; retryAfter?: number | undefined; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.retryable = options.retryable;
    this.retryAfter = options.retryAfter;
  }
}
