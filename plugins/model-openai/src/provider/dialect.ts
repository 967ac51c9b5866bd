/** What requests look like: the preset of the provider with the connection's own options. */
export interface Dialect {
  /** The provider's name, or `none` without a preset. */
  readonly provider: string;
  /** More fields for the body of every request. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Fields that are not sent: of the body, of messages, and of the functions of tools. */
  readonly omit: ReadonlySet<string>;
  /** The one name of the token limit that the server accepts; undefined if it accepts both. */
  readonly tokenParam: TokenParam | undefined;
  readonly toolIds: ToolIds;
  readonly schema: SchemaForm;
  /** The content of a message that has tool calls and no text. */
  readonly emptyContent: null | '';
  readonly roles: Roles;
  /** Whether to request a stream even if the caller wants a whole answer. */
  readonly alwaysStream: boolean;
  readonly thinkTags: ThinkTags;
  /** The header that carries the key. */
  readonly keyHeader: 'authorization' | 'api-key';
  /** Added to tool calls of another connection: the server refuses them without. */
  readonly placeholder: Placeholder | undefined;
}

export const TOKEN_PARAMS = ['max_tokens', 'max_completion_tokens'] as const;
export type TokenParam = (typeof TOKEN_PARAMS)[number];

/** `alnum9`: ids of nine letters and digits. */
export const TOOL_IDS = ['any', 'alnum9'] as const;
export type ToolIds = (typeof TOOL_IDS)[number];

/**
 * `plain`: schemas as they are. `gemini`: the part of JSON Schema that Gemini accepts. `strict`:
 * without keywords that strict servers refuse, and without combinations at the top level.
 */
export const SCHEMA_FORMS = ['plain', 'gemini', 'strict'] as const;
export type SchemaForm = (typeof SCHEMA_FORMS)[number];

/**
 * `user-first`: a conversation begins with the user. `alternate`: in addition, messages of users
 * and of the assistant alternate, and no user message follows a tool message.
 */
export const ROLES = ['any', 'user-first', 'alternate'] as const;
type Roles = (typeof ROLES)[number];

/** `split`: `<think>…</think>` at the beginning of the text is reasoning. */
export const THINK_TAGS = ['keep', 'split'] as const;
type ThinkTags = (typeof THINK_TAGS)[number];

/** A thought signature that switches validation off, or a `reasoning_content`. */
export type Placeholder = { readonly signature: string } | { readonly reasoning: string };

/** The options of a connection that are about its requests. */
export interface DialectOptions {
  readonly provider?: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
  readonly omit: readonly string[];
  readonly tokenParam?: TokenParam | undefined;
  readonly toolIds?: ToolIds | undefined;
  readonly schema?: SchemaForm | undefined;
  readonly emptyContent?: null | '' | undefined;
  readonly roles?: Roles | undefined;
  readonly alwaysStream?: boolean | undefined;
  readonly thinkTags?: ThinkTags | undefined;
}
