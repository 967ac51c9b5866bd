import type { Message, ModelEvent, ToolOutput } from '@plugboard/kernel';
import type { ToolDeclaration, Usage } from '@plugboard/kernel/contracts';

/** The version of the format. It is raised when files of the old one can no longer be read. */
export const VERSION = 1;

/**
 * A recording is one file of JSON lines: `turn`, then for each attempt `model_request` and
 * `model_answer`, for each call `tool`, then `end`. No line has headers, keys or tokens.
 */
export type Line = TurnLine | RequestLine | AnswerLine | ToolLine | EndLine;

/** What the turn was given, at the place of `record` among the interceptors. */
export interface TurnLine {
  readonly type: 'turn';
  readonly version: number;
  readonly id: string;
  readonly requestId: string;
  /** When the request arrived, in milliseconds since 1970. */
  readonly at: number;
  readonly agent: string;
  /** The call of another turn that started this one. */
  readonly parent?: { readonly turn: string; readonly call: string } | undefined;
  /** Whether the turn belonged to a session. Its key may be secret. */
  readonly inSession: boolean;
  readonly caller: Caller;
  readonly user?: string | undefined;
  readonly transport?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  readonly incremental: boolean;
  /** The agent's prompt. Null if it has none, or if the caller sent a system message instead. */
  readonly prompt: string | null;
  /** The conversation, as the agent loop received it. */
  readonly messages: readonly Message[];
  /** Results of approved calls of an earlier turn, which ran before the first model call. */
  readonly lead?: readonly Message[] | undefined;
  /** The sampling parameters: the agent's over the caller's. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly request: Requested;
  /** The agent's model connections, in order of preference. */
  readonly connections: readonly string[];
}

/** The caller, without what identifies its credential. */
export interface Caller {
  readonly project: string;
  /** The token's name, for people. */
  readonly name?: string | undefined;
  readonly subject?: string | undefined;
  /** Whether the caller has an identity, without which no call can wait for approval. */
  readonly isIdentified: boolean;
}

/** What the request asked of the agent besides the conversation. */
export interface Requested {
  readonly params: Readonly<Record<string, unknown>>;
  readonly clientTools: readonly ToolDeclaration[];
  /** System messages of the request. */
  readonly system: readonly Message[];
  readonly maxToolCalls?: number | undefined;
  readonly summarize?: boolean | undefined;
}

/** What one attempt sent to a model connection. */
export interface RequestLine {
  readonly type: 'model_request';
  /** From 1; 0 for a summary of the session's oldest turns. */
  readonly step: number;
  /** From 1, over retries and fallbacks of the step. */
  readonly attempt: number;
  readonly connection: string;
  readonly model: string;
  /** How many messages of the request before this one it begins with. */
  readonly kept: number;
  /** The messages after these. */
  readonly messages: readonly Message[];
  /** The declared tools. Absent if they are those of the request before. */
  readonly tools?: readonly ToolDeclaration[] | undefined;
  readonly params: Readonly<Record<string, unknown>>;
}

/** How the attempt ended. Without an `end` event and without an error it was cut off. */
export interface AnswerLine extends Answered {
  readonly type: 'model_answer';
  readonly step: number;
  readonly attempt: number;
}

export interface Answered {
  /** The answer. Texts that followed each other are one. */
  readonly events: readonly ModelEvent[];
  readonly error?: RecordedError | undefined;
  readonly milliseconds: number;
}

/** The failure of a model connection, or of an interceptor that refused the request. */
export interface RecordedError {
  /** The class: `ModelError`, `TurnError`; `defect` is any other, whose message is not kept. */
  readonly kind: 'model' | 'turn' | 'defect';
  readonly message: string;
  readonly code?: string | undefined;
  readonly retryable?: boolean | undefined;
  /** Seconds. */
  readonly retryAfter?: number | undefined;
  readonly isRequestFault?: boolean | undefined;
  readonly isUpstream?: boolean | undefined;
  readonly param?: string | undefined;
}

/** A tool call of the model, and what became of it. */
export interface ToolLine {
  readonly type: 'tool';
  readonly step: number;
  readonly id: string;
  /** The tool's name at the model. */
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
  /**
   * - `ran`: it has the result of the tool, or of an interceptor;
   * - `answered`: the server answered instead: the tool is unknown, the arguments are invalid;
   * - `waits`: a person has to approve it;
   * - `client`: the caller runs it;
   * - `cut`: the turn ended before its result.
   */
  readonly state: 'ran' | 'answered' | 'waits' | 'client' | 'cut';
  /** The arguments as they reached the tool. Absent if the call did not. */
  readonly input?: Readonly<Record<string, unknown>> | undefined;
  /** What the tool returned. */
  readonly output?: ToolOutput | undefined;
  /** Why the tool failed. */
  readonly failed?: { readonly message: string; readonly isRefusal: boolean } | undefined;
  /** The agent whose turn the call started. */
  readonly agent?: string | undefined;
  /** Whether an interceptor asked a person for approval. */
  readonly isPostponed?: boolean | undefined;
  readonly milliseconds?: number | undefined;
}

/** How the turn ended. */
export interface EndLine {
  readonly type: 'end';
  /** The finish reason, or the failure's code. */
  readonly status: string;
  /** The limit of the agent that ended the turn. */
  readonly limit?: string | undefined;
  /** The text of the answer after the last tool call. */
  readonly answer: string;
  readonly usage?: Usage | undefined;
  readonly milliseconds: number;
}

/** One attempt at a model connection: its request, with all messages, and its answer. */
export interface Attempt extends Answered, Omit<RequestLine, 'type' | 'kept' | 'tools'> {
  readonly tools: readonly ToolDeclaration[];
}

export interface Recording {
  readonly turn: TurnLine;
  readonly attempts: readonly Attempt[];
  readonly tools: readonly ToolLine[];
  readonly end: EndLine;
}
