/**
 * A message in the format of the chat-completions protocol. Callers send it, sessions store it, and
 * model servers of that protocol receive it, without translation.
 *
 * @public
 */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage;

/** An instruction for the model. @public */
export interface SystemMessage {
  readonly role: 'system';
  readonly content: string | readonly TextPart[];
  readonly name?: string;
}

/** A message of the user. @public */
export interface UserMessage {
  readonly role: 'user';
  readonly content: string | readonly ContentPart[];
  readonly name?: string;
}

/** An answer of the model: text, tool calls, or both. @public */
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

/** The result of a tool call, for the model. @public */
export interface ToolMessage {
  readonly role: 'tool';
  readonly content: string | readonly TextPart[];
  readonly tool_call_id: string;
}

/** The predecessor of tool messages, without ids. @public */
export interface FunctionMessage {
  readonly role: 'function';
  readonly content: string | null;
  readonly name: string;
}

/** A function call in an assistant message. `arguments` is JSON text, as written. @public */
export interface FunctionCallPart {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
  /** Data of the model connection that made the call; see `Extra`. */
  readonly extra?: Extra;
}

/** A call of a custom tool in an assistant message. `input` is free text. @public */
export interface CustomCallPart {
  readonly id: string;
  readonly type: 'custom';
  readonly custom: { readonly name: string; readonly input: string };
  readonly extra?: Extra;
}

/** A tool call in an assistant message. @public */
export type ToolCallPart = FunctionCallPart | CustomCallPart;

/**
 * Data that a model connection attaches to its answer and needs back with the conversation: a
 * thought signature, encrypted reasoning, the server's own id of a tool call.
 *
 * 1. A connector emits it as `extra` of a `tool-call` or `end` event. It may be any JSON value.
 * 2. The runtime keeps it with the tool call or the message, together with the connection's name
 *    and a digest of the request that the message answered.
 * 3. Later requests to the same connection contain it as long as nothing before the message has
 *    changed: signatures cover it. Requests to any other connection do not.
 * 4. Callers never see it, and what a caller sends under this name is dropped. A transport may let
 *    its caller keep it sealed (`hasOwnExtras` of a turn).
 *
 * @experimental
 */
export interface Extra {
  /** The name of the connection under `models`. */
  readonly connection: string;
  /** The digest of what was before the message: prompt, tools and messages. */
  readonly prefix?: string;
  readonly data: unknown;
}

/** Text in the content of a message. @public */
export interface TextPart {
  readonly type: 'text';
  readonly text: string;
}

/** The model's refusal in an assistant message. @public */
export interface RefusalPart {
  readonly type: 'refusal';
  readonly refusal: string;
}

/** An image in a user message: `url` is an https or a data URL. @public */
export interface ImagePart {
  readonly type: 'image_url';
  readonly image_url: { readonly url: string; readonly detail?: string };
}

/** Audio in a user message: `data` is base64, `format` is `wav` or `mp3`. @public */
export interface AudioPart {
  readonly type: 'input_audio';
  readonly input_audio: { readonly data: string; readonly format: string };
}

/** A file in a user message: `file_data` is a data URL. @public */
export interface FilePart {
  readonly type: 'file';
  readonly file: { readonly filename?: string; readonly file_data?: string };
}

/** A video in a user message. @public */
export interface VideoPart {
  readonly type: 'video_url';
  readonly video_url: { readonly url: string };
}

/** A part of a user message's content. @public */
export type ContentPart = TextPart | ImagePart | AudioPart | FilePart | VideoPart;

/** Returns the text and refusal parts of a content, concatenated. @public */
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
