import { recognizeAcrossCopies } from '../../host/base/across-copies.js';
import type { Extra } from '../messages/message.js';
import type { ModelReasoning, ModelText, ModelToolCallDelta, ModelUsage } from '../model/model-connector.js';
import type { Usage } from '../model/usage.js';

/**
 * The events of a turn, in order. They contain everything about a turn: a JSON answer is a fold
 * over them, SSE a map, and a session's history is derived from them.
 *
 *     started (step | reasoning | text | tool-call-delta | tool-call | tool-progress | tool-result
 *     | approval | usage | extra | nested)* (finished | failed)
 *
 * A turn refused before it begins is a single `failed`. Exactly one terminal event ends every
 * stream, and nothing follows it. Events travel in batches: those of one read from the model's
 * socket.
 *
 * @public
 */
export type AgentEvent =
  | TurnStarted
  | TurnStep
  | TurnReasoning
  | TurnText
  | TurnToolCallDelta
  | TurnToolCall
  | TurnToolProgress
  | TurnToolResult
  | TurnApproval
  | TurnUsage
  | TurnExtra
  | TurnNested
  | TurnFinished
  | TurnFailed;

/** The events of a turn in batches, ending with one terminal event. Never throws. @public */
export type AgentEvents = AsyncIterable<readonly AgentEvent[]>;

/** The turn begins: the first event, unless the turn was refused. @public */
export interface TurnStarted {
  readonly type: 'started';
  readonly turnId: string;
  readonly agent: string;
  /** The number of the turn in its session, from 1. */
  readonly turn?: number | undefined;
  /**
   * Whether calls of the turn may need approval. A protocol that has one text for the whole answer
   * then keeps the model's words back: the server's request for approval stands alone (S-74).
   */
  readonly mayAsk?: boolean | undefined;
}

/** A model starts to answer. The events up to the next `step` belong to this step. @public */
export interface TurnStep {
  readonly type: 'step';
  /** Number of the model call in the turn, from 1. */
  readonly step: number;
  /** The connection that answers. */
  readonly connection: string;
}

/** Reasoning that precedes the answer. @public */
export type TurnReasoning = ModelReasoning;

/** The model's text: a token passes through the loop uncopied. @public */
export interface TurnText extends ModelText {
  /**
   * Whether the server says it and not the model: a request for approval, after the `approval`
   * events, or a note on calls that were denied, before the first step. It is a text of its own,
   * and not kept in the session.
   */
  readonly isNotice?: boolean | undefined;
}

/**
 * A piece of the arguments of a client tool call that the model is still writing. Only for callers
 * that read the answer while it is written: `tool-call` has the whole arguments, which begin with
 * all pieces in their order. Where the model is cut off, or a limit ends the turn, no `tool-call`
 * follows, and the call was not made.
 *
 * @public
 */
export type TurnToolCallDelta = ModelToolCallDelta;

/** The model calls a tool. @public */
export interface TurnToolCall {
  readonly type: 'tool-call';
  readonly id: string;
  /** The tool's name at the model. */
  readonly name: string;
  /** JSON text as the model wrote it. */
  readonly arguments: string;
  /** The entry that offers the tool, and the tool's own name. Absent for a client tool. */
  readonly tool?: { readonly entry: string; readonly name: string } | undefined;
  /** The id of the request for approval, if a person approved the call. */
  readonly approval?: string | undefined;
  /** Whether an earlier turn began the call, whose process died before the call had a result. */
  readonly resumed?: boolean | undefined;
  /** Data of the model connection, kept with the call. Not for callers. */
  readonly extra?: Extra | undefined;
}

/** A running tool reports progress. `fraction` is from 0 to 1. @public */
export interface TurnToolProgress {
  readonly type: 'tool-progress';
  readonly id: string;
  readonly message: string;
  readonly fraction?: number | undefined;
}

/**
 * The result of a tool that the server ran. Calls of one step run at the same time, and each result
 * comes when its call has ended: not in the order of the calls.
 *
 * @public
 */
export interface TurnToolResult {
  readonly type: 'tool-result';
  readonly id: string;
  /** The text for the model. */
  readonly content: string;
  /** Images for a model that accepts them, as data URLs. */
  readonly images: readonly string[];
  readonly isError: boolean;
  /** Whether the call took effect is unknown, and `content` says so. */
  readonly effect?: 'unknown' | undefined;
  readonly milliseconds: number;
}

/**
 * A call of one of the agent's tools waits for a person's approval. It has not run, and has no
 * result in this turn. A `tool-call` of the same id precedes it only if an interceptor postponed
 * the call.
 *
 * @experimental
 */
export interface TurnApproval {
  readonly type: 'approval';
  /** Identifies the request for approval: `mcpr_…`. */
  readonly id: string;
  /** Six characters that a person types to decide. */
  readonly code: string;
  readonly call: TurnToolCall;
}

/** Usage of one model call. @public */
export type TurnUsage = ModelUsage;

/** Data of the model connection, kept with the step's message. @experimental */
export interface TurnExtra {
  readonly type: 'extra';
  readonly extra: Extra;
}

/**
 * Events of a turn that a tool call started. Readers may show them. They are not part of the turn's
 * answer. They come between the call's `tool-call` and its `tool-result`.
 *
 * @experimental
 */
export interface TurnNested {
  readonly type: 'nested';
  /** The id of the call. */
  readonly call: string;
  /** The agent that answers it. */
  readonly agent: string;
  /** One batch of that turn, from `started` to its terminal event; `nested` ones among them. */
  readonly events: readonly AgentEvent[];
}

/** The turn ended well. Terminal. @public */
export interface TurnFinished {
  readonly type: 'finished';
  readonly reason: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /**
   * The agent's limit that ended the turn, if one did. `budget`: a model interceptor refused
   * another step with `insufficient_quota`.
   */
  readonly limit?: 'max_steps' | 'max_tool_calls' | 'max_tokens' | 'budget' | undefined;
  /** The stop sequence that ended the text, if the model server named it. */
  readonly stopSequence?: string | undefined;
  /** The model server's own finish reason, for the log, if it is another word than its `reason`. */
  readonly rawReason?: string | undefined;
  /** Sum over all model calls. */
  readonly usage: Usage;
}

/** The turn failed. Terminal. @public */
export interface TurnFailed {
  readonly type: 'failed';
  readonly failure: Failure;
}

/** Why a turn failed. Data, not an exception: encoders send it to callers. @public */
export interface Failure {
  readonly code: FailureCode;
  /** Shown to the caller: no stack, no key, no address of a model server. */
  readonly message: string;
  /** Whether a tool had started: running the turn again could repeat its effects. */
  readonly toolsRan: boolean;
  /** The invalid field of the request, for `invalid_request`. */
  readonly param?: string | undefined;
  /** Seconds to wait before a retry, as whoever refused the turn asks for. Callers receive it. */
  readonly retryAfter?: number | undefined;
  /** Whether the model server reported it, as the code says (`ModelError`). */
  readonly isUpstream?: boolean | undefined;
  /** Whether the same request may succeed shortly after, as the model connection says. */
  readonly retryable?: boolean | undefined;
}

/** Why a turn failed, for programs. Transports map it to a status and a type. @public */
export type FailureCode =
  /** All model connections failed. */
  | 'model_failed'
  /** The turn exceeded the agent's `timeout`. */
  | 'timed_out'
  /** A defect in the server or a plugin. */
  | 'crashed'
  /** The caller disconnected. */
  | 'abandoned'
  /** The server stopped before the turn had ended. */
  | 'stopped'
  /** The session store failed. */
  | 'store_failed'
  /** The server lost its lease, and another one may have the session: nothing was stored. */
  | 'lease_lost'
  /**
   * The request is invalid: a tool result without a call, a client tool named like one of the
   * agent's tools, or what the model server refuses.
   */
  | 'invalid_request'
  /** The caller may not run turns, or may not use the agent. */
  | 'forbidden'
  /** The server runs as many turns as `limits` allows, or the model server is overloaded. */
  | 'overloaded'
  | 'draining'
  /** The queue of the session is full, or the turn waited too long. */
  | 'session_busy'
  /** The conversation exceeds the context window, of the agent or of its model. */
  | 'context_length_exceeded'
  /** The model server refuses the content of the request. */
  | 'content_filter'
  /** The project has reached a limit of the session store. */
  | 'quota_exceeded'
  /** A budget is spent: `retryAfter` is until its next period. */
  | 'insufficient_quota'
  /** The session has reached the size limit. */
  | 'session_full'
  /** A newer request to the session interrupted the turn. */
  | 'turn_interrupted'
  /** Another request cancelled the turn. */
  | 'turn_cancelled'
  /** Another request deleted the session. */
  | 'session_deleted'
  /** A limit of the caller or of the model server is reached: requests, or turns at once. */
  | 'rate_limited'
  /** The caller has no session with that id. */
  | 'conversation_not_found'
  /** A session with that key exists. */
  | 'conversation_exists'
  /** Tool calls of the session wait for the approval of another caller. */
  | 'approval_pending'
  /** The caller can decide about no tool call with that id. */
  | 'approval_not_found'
  /** It was decided before. */
  | 'approval_decided'
  /** Nobody decided in time. */
  | 'approval_expired'
  /** The session crashed repeatedly and is closed for a while. */
  | 'session_quarantined';

/** An error with a message for the caller. Any other one in a turn becomes `crashed`. @public */
export class TurnError extends Error {
  override readonly name = 'TurnError';

  static {
    recognizeAcrossCopies(TurnError, 'TurnError');
  }

  constructor(
    readonly code: FailureCode,
    message: string,
    /** `retryAfter` in seconds: callers receive it as it is. */
    readonly options: {
      readonly cause?: unknown;
      readonly retryAfter?: number | undefined;
      readonly param?: string;
      readonly isUpstream?: boolean | undefined;
      readonly retryable?: boolean | undefined;
    } = {},
  ) {
    super(message, { cause: options.cause });
  }
}

/** Whether an event ends its turn. @public */
export function isTerminal(event: AgentEvent): event is TurnFinished | TurnFailed {
  return event.type === 'finished' || event.type === 'failed';
}
