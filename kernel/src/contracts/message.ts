/**
 * A conversation, in the shape of the chat-completions protocol itself (its "messages"): what a caller sends is what a session keeps
 * and what a model server of that protocol is sent, with nothing translated in between.
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
  /** Null only beside tool calls, a refusal or audio. */
  readonly content: string | readonly (TextPart | RefusalPart)[] | null;
  readonly name?: string;
  readonly refusal?: string;
  readonly tool_calls?: readonly ToolCallPart[];
  /** What tool calls were called before they had ids. */
  readonly function_call?: { readonly name: string; readonly arguments: string };
  readonly audio?: { readonly id: string };
}

export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string | readonly TextPart[];
  readonly tool_call_id: string;
}

/** What a tool message was called before tool calls had ids. */
export interface FunctionMessage {
  readonly role: 'function';
  readonly content: string | null;
  readonly name: string;
}

/** A call of a function as it stands in an assistant message. `arguments` is JSON text, as the model wrote it. */
export interface FunctionCallPart {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface CustomCallPart {
  readonly id: string;
  readonly type: 'custom';
  readonly custom: { readonly name: string; readonly input: string };
}

export type ToolCallPart = FunctionCallPart | CustomCallPart;

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

/** The text of a content, its text parts joined as they stand; what is no text is left out. */
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
