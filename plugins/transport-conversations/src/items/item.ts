/** An item of a conversation, in the shapes of the reference protocol. */
export type Item =
  | MessageItem
  | ReasoningItem
  | CallItem
  | OutputItem
  | McpCallItem
  | ApprovalRequestItem
  | ApprovalResponseItem
  | CustomCallItem
  | CustomOutputItem;

interface MessageItem {
  readonly id: string;
  readonly type: 'message';
  /** `tool` is for images that tools gave, which the model was shown as a message. */
  readonly role: 'user' | 'assistant' | 'tool';
  readonly status: 'completed';
  /** Of a user, `inputParts`. */
  readonly content: readonly (OutputPart | object)[];
}

/** The model's reasoning before an answer. */
interface ReasoningItem {
  readonly id: string;
  readonly type: 'reasoning';
  readonly status: 'completed';
  readonly summary: readonly { readonly type: 'summary_text'; readonly text: string }[];
}

/** A call of a tool that the caller runs. */
interface CallItem {
  readonly id: string;
  readonly type: 'function_call';
  readonly status: 'completed';
  readonly call_id: string;
  readonly name: string;
  /** JSON text, as the model wrote it. */
  readonly arguments: string;
}

interface OutputItem {
  readonly id: string;
  readonly type: 'function_call_output';
  readonly status: 'completed';
  readonly call_id: string;
  readonly output: string;
}

/** A call of a tool of the agent's own, which ran here. */
export interface McpCallItem {
  readonly id: string;
  readonly type: 'mcp_call';
  /** The tool's entry in the configuration. */
  readonly server_label: string;
  readonly name: string;
  readonly arguments: string;
  readonly output: string | null;
  /** Of a call that failed. Old turns have what went wrong in the output. */
  readonly error: ToolError | null;
  readonly status: 'completed' | 'failed' | 'incomplete';
  /** The request for approval that allowed the call. */
  readonly approval_request_id: string | null;
}

interface ToolError {
  readonly type: 'mcp_tool_execution_error';
  readonly content: readonly { readonly type: 'text'; readonly text: string }[];
}

/** A call of a tool of the agent's own that a person decides about. */
interface ApprovalRequestItem {
  /** As in the response that asked. */
  readonly id: string;
  readonly type: 'mcp_approval_request';
  readonly server_label: string;
  readonly name: string;
  readonly arguments: string;
}

/** A decision about such a call, or why there was none. */
interface ApprovalResponseItem {
  readonly id: string;
  readonly type: 'mcp_approval_response';
  readonly approval_request_id: string;
  readonly approve: boolean;
  readonly reason: string | null;
}

interface CustomCallItem {
  readonly id: string;
  readonly type: 'custom_tool_call';
  readonly call_id: string;
  readonly name: string;
  readonly input: string;
}

interface CustomOutputItem {
  readonly id: string;
  readonly type: 'custom_tool_call_output';
  readonly call_id: string;
  readonly output: string;
}

export type OutputPart =
  | { readonly type: 'output_text'; readonly text: string; readonly annotations: readonly never[] }
  | { readonly type: 'refusal'; readonly refusal: string };
