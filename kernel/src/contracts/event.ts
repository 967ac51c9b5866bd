import type { Usage } from './usage.js';

/**
 * What happens in a turn, as it happens. The stream of events is the whole truth of a turn: a JSON answer is a fold over it, SSE a map over
 * it, a session's history is kept from it.
 *
 *     started (step | reasoning | text | tool-call | tool-progress | tool-result | usage)* (finished | failed)
 *
 * A turn that is refused before it begins is a lone `failed`. Exactly one terminal event ends every stream, and nothing follows it.
 * Events travel in batches: what one read of the model's socket brought. Their order is their number: a reader that needs numbers counts.
 */
export type AgentEvent =
  | TurnStarted
  | TurnStep
  | TurnReasoning
  | TurnText
  | TurnToolCall
  | TurnToolProgress
  | TurnToolResult
  | TurnUsage
  | TurnFinished
  | TurnFailed;

export type AgentEvents = AsyncIterable<readonly AgentEvent[]>;

export interface TurnStarted {
  readonly type: 'started';
  readonly turnId: string;
  readonly agent: string;
}

/** A model has begun to answer: what follows, up to the next of these, belongs to this step. */
export interface TurnStep {
  readonly type: 'step';
  /** Which model call of the turn, from 1. */
  readonly step: number;
  /** The connection that answers. */
  readonly connection: string;
}

export interface TurnReasoning {
  readonly type: 'reasoning';
  readonly text: string;
}

/** The same shape as a model connection's, so that a token goes through the loop without being copied. */
export interface TurnText {
  readonly type: 'text';
  readonly text: string;
  /** The same text as it stands between the quotes of a JSON string, where it is at hand. */
  readonly json?: string | undefined;
}

/** The model asks for a tool. */
export interface TurnToolCall {
  readonly type: 'tool-call';
  readonly id: string;
  /** The name that the model knows the tool by. */
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
  /** The entry that offers the tool and the tool's own name; absent for a tool that the caller brought, which the caller runs. */
  readonly tool?: { readonly entry: string; readonly name: string } | undefined;
}

export interface TurnToolProgress {
  readonly type: 'tool-progress';
  readonly id: string;
  readonly message: string;
  readonly fraction?: number | undefined;
}

/** A tool that the server ran has ended. Results come in the order of their calls. */
export interface TurnToolResult {
  readonly type: 'tool-result';
  readonly id: string;
  /** What the model is told. */
  readonly content: string;
  /** Images for a model that sees, as data URLs. */
  readonly images: readonly string[];
  readonly isError: boolean;
  readonly milliseconds: number;
}

/** What one model call used. */
export interface TurnUsage {
  readonly type: 'usage';
  readonly usage: Usage;
}

export interface TurnFinished {
  readonly type: 'finished';
  readonly reason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** The budget that ended the turn, where one did. */
  readonly limit?: 'max_steps' | 'max_tool_calls' | 'max_tokens' | undefined;
  /** Of all model calls together. */
  readonly usage: Usage;
}

export interface TurnFailed {
  readonly type: 'failed';
  readonly failure: Failure;
}

/** Why a turn has no answer. Data, not an exception: it goes through encoders to callers. */
export interface Failure {
  readonly code: FailureCode;
  /** For the caller: no stack, no key, no address of a model server. */
  readonly message: string;
  /** Whether any tool had begun, so that running the turn again could do something twice. */
  readonly toolsRan: boolean;
  /** The field of the request that is at fault, for `invalid_request`. */
  readonly param?: string | undefined;
  /** Seconds after which asking again makes sense, for `overloaded`, `draining`, `rate_limited` and `session_busy`. */
  readonly retryAfter?: number | undefined;
}

export type FailureCode =
  /** A model connection failed, and there was no other. */
  | 'model_failed'
  /** The turn exceeded the agent's `timeout`. */
  | 'timed_out'
  /** A defect of the kernel or a plugin. */
  | 'crashed'
  /** The caller has gone. */
  | 'abandoned'
  /** The server stopped before the turn had ended. */
  | 'stopped'
  /** The session store could not keep the turn. */
  | 'store_failed'
  /** The request asks for what cannot be: tool results that answer no call, a tool named like one of the agent's own. */
  | 'invalid_request'
  /** This process runs as many turns as it may. */
  | 'overloaded'
  | 'draining'
  /** The session has turns enough in its queue, or the wait was too long. */
  | 'session_busy'
  /** The conversation is longer than the model can take, and the agent does not shorten it. */
  | 'context_length_exceeded'
  /** The session holds as much as a session may. */
  | 'session_full'
  /** A newer request to the session took the turn's place. */
  | 'turn_interrupted'
  /** Someone cancelled the session's turns. */
  | 'turn_cancelled'
  /** Someone deleted the session. */
  | 'session_deleted'
  /** The token runs as many turns as it may. */
  | 'rate_limited'
  /** There is no session of that id that the caller reaches. */
  | 'conversation_not_found'
  /** There is a session under the key that a new one was to have. */
  | 'conversation_exists'
  /** The session crashed again and again, and takes no turns for a while. */
  | 'session_quarantined';

/** What a part of a turn throws when it knows what the caller should be told. Anything else that is thrown is `crashed`. */
export class TurnError extends Error {
  override readonly name = 'TurnError';

  constructor(
    readonly code: FailureCode,
    message: string,
    readonly options: { readonly cause?: unknown; readonly retryAfter?: number; readonly param?: string } = {},
  ) {
    super(message, { cause: options.cause });
  }
}
