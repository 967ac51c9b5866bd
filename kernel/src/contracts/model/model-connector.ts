import { recognizeAcrossCopies } from '../../host/base/across-copies.js';
import { type Description, defineExtensionPoint } from '../../host/plugin/extension-point.js';
import type { Message } from '../messages/message.js';
import type { Usage } from './usage.js';

/**
 * A connection to one model: an entry under `models` in the configuration. Discipline: by name.
 *
 * 1. The agent loop calls `stream` once for each step of a turn.
 * 2. The connector yields batches: the events of one read from the model's socket. `[event]` is a
 *    valid batch.
 * 3. The last event is `end`, exactly once. A stream that stops without it was cut off, and the
 *    turn fails.
 * 4. Failures are thrown as `ModelError`, which says whether a retry may help. The runtime retries;
 *    a connector never does.
 * 5. When the signal aborts, the connector closes its socket at once and throws.
 * 6. When the reader stops pulling, the connector stops reading its socket. When the reader leaves,
 *    the iterator's `return` closes the socket.
 * 7. The connector does not change the request. It may add to its `headers`.
 * 8. Several answers may be read at the same time.
 *
 * @public
 */
export interface ModelConnector {
  /** The model's name at the model server. Shown to operators. */
  readonly model: string;
  /** Tokens of one request and its answer together. */
  readonly contextWindow: number;
  /** Content types of user messages: always `text`, and `image` if the model accepts images. */
  readonly input: readonly ('text' | 'image')[];
  /**
   * Whether the connection supports a sampling parameter, by its name in the protocol (`top_p`).
   * Unsupported parameters are left out of its requests.
   */
  supportsParam(param: string): boolean;
  /**
   * The provider as the conventions of OpenTelemetry name it (`anthropic`, `aws.bedrock`), for
   * traces and metrics. Without it, they say `_OTHER`.
   */
  readonly provider?: string | undefined;
  /** Facts for `plugboard plugins`: `{ kind: 'detail', label: 'provider', text: 'openai' }`. */
  describe?(): readonly Description[];
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<readonly ModelEvent[]>;
}

/** The extension point of model connections, by the name of the entry. @public */
export const ModelConnectors = defineExtensionPoint<ModelConnector>('agent.model-connector', {
  discipline: 'by-name',
  describe: (connector) => connector.describe?.() ?? [],
  shape: {
    model: 'string',
    contextWindow: 'number',
    input: 'array',
    supportsParam: 'function',
    'provider?': 'string',
    'describe?': 'function',
    stream: 'function',
  },
});

/** One request to a model: one step of a turn. @public */
export interface ModelRequest {
  /** The conversation. An `extra` in it is this connection's own. */
  readonly messages: readonly Message[];
  /** The tools the model may call: the agent's by name, then the caller's by name. */
  readonly tools: readonly ToolDeclaration[];
  /** Supported sampling parameters by their names in the protocol, `tool_choice` included. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Whether the answer is read while it is written. If not, requesting it whole costs less. */
  readonly incremental: boolean;
  /** Tools whose calls the caller reads while they are written: `tool-call-delta` events. */
  readonly streamedTools?: readonly string[] | undefined;
  /** The id of the request that the turn answers, as callers and logs know it. */
  readonly requestId: string;
  /** Identifies the session in all requests of it, without revealing its key. */
  readonly session: string | undefined;
  /** The end user, as the caller names it. */
  readonly user: string | undefined;
  /**
   * The memory of the turn, of its `Account`. The runtime reserves the events of the answer in it.
   * What a connector holds besides, such as an image that it fetches or an event that has not
   * ended, it reserves first, and gives back when the answer is over.
   */
  readonly account?:
    | {
        /** The caller: two turns of one caller have the same. */
        readonly owner: readonly string[];
        /** Reserves bytes. @throws TurnError `overloaded` if there are not enough. */
        require(bytes: number): void;
        /** Gives back bytes that are no longer held. */
        release(bytes: number): void;
      }
    | undefined;
  /** Extra headers. Subscribers of the `plugboard.step` channel may add some before it is sent. */
  readonly headers: Record<string, string>;
}

/** A tool as it is declared to the model. @public */
export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments object. */
  readonly inputSchema: Readonly<Record<string, unknown>>;
  /** Set on a client tool that asks for strict arguments. */
  readonly strict?: boolean;
}

/** One event of a model's answer. A stream ends with exactly one `end`. @public */
export type ModelEvent = ModelText | ModelReasoning | ModelToolCallDelta | ModelToolCall | ModelUsage | ModelEnd;

/** Text of the answer: the part that arrived with one read. @public */
export interface ModelText {
  readonly type: 'text';
  readonly text: string;
  /**
   * The same text, escaped as between the quotes of a JSON string, if the connector has it. A JSON
   * encoder copies it instead of escaping again. `JSON.parse('"' + json + '"')` must equal `text`.
   */
  readonly json?: string | undefined;
  /** Whether the text says why the model does not answer. */
  readonly isRefusal?: boolean | undefined;
}

/** Reasoning that precedes the answer. Shown apart from the answer and not part of it. @public */
export interface ModelReasoning {
  readonly type: 'reasoning';
  readonly text: string;
}

/**
 * A piece of the arguments of a call that the model is still writing. Optional: `tool-call` has the
 * whole arguments, and they must begin with all pieces in their order. A call has pieces only if
 * all calls before it in the answer have. It cannot be repeated once it has begun, as text cannot.
 *
 * @public
 */
export interface ModelToolCallDelta {
  readonly type: 'tool-call-delta';
  /** As in the `tool-call` that follows. */
  readonly id: string;
  /** One of the request's `streamedTools`. */
  readonly name: string;
  /** May be empty, in the first one. */
  readonly arguments: string;
}

/** A tool call with complete arguments. @public */
export interface ModelToolCall {
  readonly type: 'tool-call';
  /** The model server's id of the call, or a generated one if it sent none. */
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it, not validated. */
  readonly arguments: string;
  /** Data that later requests need with the call: any JSON value, or undefined. See `Extra`. */
  readonly extra?: unknown;
}

/** Token counts of the request. A later one replaces an earlier one. @public */
export interface ModelUsage {
  readonly type: 'usage';
  readonly usage: Usage;
}

/** The last event of a model's answer. @public */
export interface ModelEnd {
  readonly type: 'end';
  /** Why the model stopped: the protocol's finish reason. */
  readonly reason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** The stop sequence that ended the text, if the model server names it. */
  readonly stopSequence?: string | undefined;
  /** The model server's own finish reason, for the log, if it is another word than `reason`. */
  readonly rawReason?: string | undefined;
  /** Data that later requests need with the message: any JSON value, or undefined. See `Extra`. */
  readonly extra?: unknown;
}

/** Thrown if the model server cannot be reached or does not answer correctly. @public */
export class ModelError extends Error {
  override readonly name = 'ModelError';

  static {
    recognizeAcrossCopies(ModelError, 'ModelError');
  }
  /**
   * What kind of failure it is, for callers: each has a status of its own (400, 400, 400, 429,
   * 503). Undefined for any other, which is a 502.
   */
  readonly code: 'context_length_exceeded' | 'content_filter' | 'invalid_request' | 'rate_limited' | 'overloaded' | undefined;
  /** Whether the same request may succeed if it is repeated shortly after. */
  readonly retryable: boolean;
  /** The wait that the model server asked for, in seconds. Callers receive it. */
  readonly retryAfter: number | undefined;
  /** Whether the request is at fault and not the connection: other requests may succeed. */
  readonly isRequestFault: boolean;
  /**
   * Whether the model server itself reported it, and not the connector. Protocols in which every
   * failed run is a 502 keep to that then, except for refused content.
   */
  readonly isUpstream: boolean;

  /**
   * @param message shown to callers: says what happened, without keys or addresses.
   * @param options `retryable` is by default true for `rate_limited` and `overloaded`,
   *   `isRequestFault` for the other codes.
   */
  constructor(
    message: string,
    {
      code,
      retryable = code === 'rate_limited' || code === 'overloaded',
      retryAfter,
      isRequestFault = code !== undefined && code !== 'rate_limited' && code !== 'overloaded',
      isUpstream = false,
      cause,
    }: {
      code?: ModelError['code'];
      retryable?: boolean | undefined;
      retryAfter?: number | undefined;
      isRequestFault?: boolean | undefined;
      isUpstream?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause });
    this.code = code;
    this.retryable = retryable;
    this.retryAfter = retryAfter;
    this.isRequestFault = isRequestFault;
    this.isUpstream = isUpstream;
  }
}
