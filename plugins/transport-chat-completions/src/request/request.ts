import type { AssistantMessage, AudioPart, FilePart, ImagePart, TextPart, VideoPart } from '@plugboard/kernel/contracts';

/** The body after `parseRequest`: without top-level nulls, with unknown fields. */
export interface CompletionRequest {
  /** 1 to 256 bytes. */
  readonly model: string;
  readonly messages: readonly RequestMessage[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean | null };
  readonly user?: string;
  readonly session_id?: string;
  readonly n?: number;
  readonly modalities?: readonly ('text' | 'audio')[];
  readonly audio?: object;
  readonly tools?: readonly RequestTool[];
  readonly tool_choice?: ToolChoice;
  readonly function_call?: string | { readonly name: string };
  readonly metadata?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** A message as the protocol defines it. `conversationOf` converts it to a kernel message. */
export type RequestMessage =
  | {
      readonly role: 'system' | 'developer';
      readonly content?: string | readonly TextPart[] | null;
      readonly name?: string | null;
    }
  | {
      readonly role: 'user';
      readonly content?: string | readonly RequestPart[] | null;
      readonly name?: string | null;
    }
  | {
      readonly role: 'assistant';
      readonly content?: AssistantMessage['content'];
      readonly name?: string | null;
      readonly refusal?: string | null;
      readonly tool_calls?: NonNullable<AssistantMessage['tool_calls']> | null;
      readonly function_call?: NonNullable<AssistantMessage['function_call']> | null;
      readonly audio?: NonNullable<AssistantMessage['audio']> | null;
    }
  | { readonly role: 'tool'; readonly content?: string | readonly TextPart[] | null; readonly tool_call_id: string }
  | { readonly role: 'function'; readonly content?: string | null; readonly name: string };

export type RequestPart =
  | TextPart
  | ImagePart
  | AudioPart
  | VideoPart
  | (FilePart & { readonly file: { readonly file_id?: string | null } });

export type RequestTool =
  | {
      readonly type: 'function';
      readonly function: {
        readonly name: string;
        readonly description?: string | null;
        readonly parameters?: Readonly<Record<string, unknown>> | null;
        readonly strict?: boolean | null;
      };
    }
  | { readonly type: 'custom'; readonly custom: { readonly name: string } };

export type ToolChoice =
  | 'none'
  | 'auto'
  | 'required'
  | { readonly type: 'function' | 'custom' }
  | { readonly type: 'allowed_tools'; readonly allowed_tools: { readonly mode: 'auto' | 'required' } };
