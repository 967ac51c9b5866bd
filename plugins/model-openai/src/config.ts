import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';
import { parseBaseUrl } from './http/endpoint.js';
import { ROLES, SCHEMA_FORMS, THINK_TAGS, TOKEN_PARAMS, TOOL_IDS } from './provider/dialect.js';
import { PROVIDERS } from './provider/presets.js';

/** Characters of a header value (RFC 9110, 5.5). The usual mistake is a trailing newline. */
const HEADER_VALUE = '^[\\t\\x20-\\x7e\\x80-\\xff]*$';

export const configSchema = {
  type: 'object',
  properties: {
    model: {
      type: 'string',
      minLength: 1,
      description: 'The name of the model at the model server.',
    },
    baseUrl: {
      type: 'string',
      minLength: 1,
      description: 'The URL of the model server, without `/chat/completions`. Without a scheme it is http.',
      default: 'https://api.openai.com/v1',
    },
    apiKey: {
      type: 'string',
      pattern: '^[\\x21-\\x7e]*$',
      secret: true,
      description: 'Sent as `Authorization: Bearer …`. If empty, the header is not sent.',
    },
    headers: {
      type: 'object',
      propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
      additionalProperties: {
        type: 'string',
        pattern: HEADER_VALUE,
        secret: true,
        description: 'The value of the header.',
      },
      description: 'Additional headers of every request, by name.',
      default: {},
    },
    idleTimeout: {
      type: 'string',
      format: 'duration',
      description: 'Maximum time without data from the model server, before or during an answer. Then the answer fails.',
      default: '120s',
    },
    connectTimeout: {
      type: 'string',
      format: 'duration',
      description: 'Time limit for opening a connection, TLS included.',
      default: '10s',
    },
    contextWindow: {
      type: 'integer',
      minimum: 1,
      description: 'The context window: tokens of one request and its answer together.',
      default: 128_000,
    },
    input: {
      type: 'array',
      items: { type: 'string', enum: ['text', 'image'], description: 'A kind of content.' },
      uniqueItems: true,
      description: 'What user messages may contain. Use `[text]` for a model that cannot read images.',
      default: ['text', 'image'],
    },
    provider: {
      type: 'string',
      enum: PROVIDERS,
      description:
        'Selects the preset of a provider, for all options below. By default the host of `baseUrl` decides. `none` applies ' +
        'no preset.',
    },
    body: {
      type: 'object',
      additionalProperties: true,
      description:
        'Additional fields in the body of every request, such as `chat_template_kwargs`. They replace parameters of the ' +
        'same name.',
      default: {},
    },
    omit: {
      type: 'array',
      items: { type: 'string', minLength: 1, description: 'The name of a field.' },
      uniqueItems: true,
      description:
        'Fields that the server refuses, added to the preset: of the body (`seed`), of messages (`name`) or of functions ' +
        '(`strict`).',
      default: [],
    },
    tokenParam: {
      type: 'string',
      enum: TOKEN_PARAMS,
      description: 'The field that carries the token limit; some servers accept only one of the two.',
    },
    toolIds: {
      type: 'string',
      enum: TOOL_IDS,
      description: 'The form of tool call ids: any, or nine letters and digits, as Mistral requires.',
    },
    schema: {
      type: 'string',
      enum: SCHEMA_FORMS,
      description:
        'The form of the JSON Schemas of tools: `plain` as they are, `gemini` for Gemini, `strict` without keywords that ' +
        'strict servers refuse.',
    },
    emptyContent: {
      enum: [null, ''],
      description: 'The content of a message with tool calls and no text.',
    },
    roles: {
      type: 'string',
      enum: ROLES,
      description:
        'Whether a conversation must begin with the user (`user-first`), and user and assistant must alternate too ' +
        '(`alternate`).',
    },
    alwaysStream: {
      type: 'boolean',
      description: 'Whether to stream from the model server even if the caller does not stream.',
    },
    thinkTags: {
      type: 'string',
      enum: THINK_TAGS,
      description: 'Whether `<think>…</think>` at the beginning of the text is kept as text or split off as reasoning.',
    },
  },
  required: ['model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type OpenAiConfig = Infer<typeof configSchema>;

/** Headers that the connection controls. */
const OWN_HEADERS = new Set([
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/** Fields of the body that the connection controls. */
const OWN_FIELDS = ['model', 'messages', 'tools', 'stream'];

/** Finds mistakes in options that their schema cannot express. */
export function problemsOf(config: OpenAiConfig): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const endpoint = parseBaseUrl(config.baseUrl);
  if (typeof endpoint === 'string') problems.push({ path: ['baseUrl'], message: endpoint });
  for (const name of Object.keys(config.headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()))
      problems.push({ path: ['headers', name], message: 'is set by the connection; remove it' });
  }
  for (const name of OWN_FIELDS) {
    if (Object.hasOwn(config.body, name)) problems.push({ path: ['body', name], message: 'is set by the connection; remove it' });
    if (config.omit.includes(name))
      problems.push({ path: ['omit', config.omit.indexOf(name)], message: `every request needs "${name}"; remove it` });
  }
  if (!config.input.includes('text'))
    problems.push({ path: ['input'], message: 'must include text, which every conversation contains' });
  return problems;
}
