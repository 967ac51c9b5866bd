/**
 * The body of a request after `parseRequest`: it matches `requestSchema`, without top-level nulls.
 * Unknown fields are kept.
 */
export interface ResponseRequest {
  /** 1 to 256 bytes. */
  readonly model?: string;
  readonly input?: string | readonly InputItem[];
  readonly instructions?: string;
  readonly previous_response_id?: string;
  readonly conversation?: string | { readonly id: string };
  readonly tools?: readonly RequestTool[];
  readonly tool_choice?: ToolChoice;
  readonly parallel_tool_calls?: boolean;
  readonly text?: { readonly format?: TextFormat | null; readonly verbosity?: string | null };
  readonly reasoning?: {
    readonly effort?: string | null;
    readonly summary?: string | null;
    readonly context?: unknown;
  };
  readonly temperature?: number;
  readonly top_p?: number;
  readonly presence_penalty?: number;
  readonly frequency_penalty?: number;
  readonly top_logprobs?: number;
  readonly max_output_tokens?: number;
  readonly max_tool_calls?: number;
  readonly include?: readonly string[];
  readonly truncation?: 'auto' | 'disabled';
  readonly metadata?: Readonly<Record<string, string>>;
  readonly safety_identifier?: string;
  readonly prompt_cache_key?: string;
  readonly user?: string;
  readonly store?: boolean;
  readonly stream?: boolean;
  readonly background?: boolean;
  /** On a socket: which sequence of responses it belongs to. */
  readonly stream_id?: string;
  /** On a socket: `false` prepares a conversation without asking the model. */
  readonly generate?: boolean;
  readonly [field: string]: unknown;
}

/** The conversation that a request names: a key or an opaque id. */
export function conversationName({ conversation }: ResponseRequest): string | undefined {
  return typeof conversation === 'object' ? conversation.id : conversation;
}

/** An element of `input`; its fields are checked when it is read. */
export type InputItem = Readonly<Record<string, unknown>>;

/** A tool of the caller. The fields of types other than these are not checked. */
export interface RequestTool {
  /** `function`, `custom`, `namespace`, or another. */
  readonly type: string;
  readonly name?: string;
  readonly description?: string | null;
  readonly parameters?: Readonly<Record<string, unknown>> | null;
  readonly strict?: boolean | null;
  /** Of a custom tool. */
  readonly format?: Readonly<Record<string, unknown>> | null;
  /** Of a namespace. */
  readonly tools?: readonly RequestTool[];
}

export type ToolChoice =
  | 'none'
  | 'auto'
  | 'required'
  | {
      readonly type: 'allowed_tools';
      readonly mode: 'none' | 'auto' | 'required';
      readonly tools: readonly ToolReference[];
    }
  | (ToolReference & { readonly type: 'function' | 'custom' });

interface ToolReference {
  readonly name?: string;
  readonly namespace?: string;
}

export type TextFormat =
  | { readonly type: 'text' | 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly name: string;
      readonly description?: string | null;
      readonly schema?: Readonly<Record<string, unknown>> | null;
      readonly strict?: boolean | null;
    };
