/**
 * A message in the format of the chat-completions protocol. Callers send it, sessions store it, and
 * model servers of that protocol receive it, without translation.
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage;

export interface SystemMessage {
  readonly role: 'system';
  readonly content: string | readonly TextPart[];
  readonly name?: string;
}

export interface UserMessage {
  readonly role: 'user';
  readonly content: string | readonly ContentPart[];
  readonly name?: string;
}

export interface AssistantMessage {
  readonly role: 'assistant';
  /** Null only with tool calls, a refusal or audio. */
  readonly content: string | readonly (TextPart | RefusalPart)[] | null;
  readonly name?: string;
  readonly refusal?: string;
  readonly tool_calls?: readonly ToolCallPart[];
  /** The predecessor of tool calls, without ids. */
  readonly function_call?: { readonly name: string; readonly arguments: string };
  readonly audio?: { readonly id: string };
  /** Data of the model connection that made the message; see `Extra`. */
  readonly extra?: Extra;
}

export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string | readonly TextPart[];
  readonly tool_call_id: string;
}

/** The predecessor of tool messages, without ids. */
export interface FunctionMessage {
  readonly role: 'function';
  readonly content: string | null;
  readonly name: string;
}

/** A function call in an assistant message. `arguments` is JSON text as the model wrote it. */
export interface FunctionCallPart {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  /** Data of the model connection that made the call; see `Extra`. */
  readonly extra?: Extra;
}

export interface CustomCallPart {
  readonly id: string;
  readonly type: 'custom';
  readonly custom: { readonly name: string; readonly input: string };
  readonly extra?: Extra;
}

export type ToolCallPart = FunctionCallPart | CustomCallPart;

/**
 * Data that a model connection attaches to its answer and needs back with the conversation: a thought
 * signature, encrypted reasoning, the server's own id of a tool call.
 *
 * 1. A connector emits it as `extra` of a `tool-call` or `end` event. It may be any JSON value.
 * 2. The runtime keeps it with the tool call or the message, together with the connection's name.
 * 3. Later requests to the same connection contain it; requests to any other do not.
 * 4. Callers never see it, and what a caller sends under this name is dropped.
 */
export interface Extra {
  /** The name of the connection under `models`. */
  readonly connection: string;
  readonly data: unknown;
}

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

export interface RefusalPart {
  readonly type: 'refusal';
  readonly refusal: string;
}

export interface ImagePart {
  readonly type: 'image_url';
  readonly image_url: { readonly url: string; readonly detail?: string };
}

export interface AudioPart {
  readonly type: 'input_audio';
  readonly input_audio: { readonly data: string; readonly format: string };
}

export interface FilePart {
  readonly type: 'file';
  readonly file: { readonly filename?: string; readonly file_data?: string };
}

export interface VideoPart {
  readonly type: 'video_url';
  readonly video_url: { readonly url: string };
}

export type ContentPart = TextPart | ImagePart | AudioPart | FilePart | VideoPart;

/**
 * Returns the text of a content: its text and refusal parts, concatenated. Other parts are skipped.
 */
export function textOf(content: Message['content']): string {
  if (content === null) return '';
  if (typeof content === 'string') return content;
  let text = '';
  for (const part of content) {
    if (part.type === 'text') text += part.text;
    else if (part.type === 'refusal') text += part.refusal;
  }
  return text;
}
