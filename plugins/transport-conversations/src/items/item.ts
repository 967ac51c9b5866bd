/** An item of a conversation, in the shapes of the reference protocol. */
export type Item = MessageItem | CallItem | OutputItem | McpCallItem | CustomCallItem | CustomOutputItem;

interface MessageItem {
  readonly id: string;
  readonly type: 'message';
  /** `tool` is for images that tools gave, which the model was shown as a message. */
  readonly role: 'user' | 'assistant' | 'tool';
  readonly status: 'completed';
  readonly content: readonly (InputPart | OutputPart)[];
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
  /** What went wrong in a tool is in its output, which is all that is kept. */
  readonly error: null;
  readonly status: 'completed' | 'incomplete';
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

export type InputPart =
  | { readonly type: 'input_text'; readonly text: string }
  | { readonly type: 'input_image'; readonly image_url: string; readonly detail: string; readonly file_id: null }
  | { readonly type: 'input_audio'; readonly input_audio: { readonly data: string; readonly format: string } }
  | { readonly type: 'input_file'; readonly filename?: string; readonly file_data?: string; readonly file_url?: string };

export type OutputPart =
  | { readonly type: 'output_text'; readonly text: string; readonly annotations: readonly never[] }
  | { readonly type: 'refusal'; readonly refusal: string };
