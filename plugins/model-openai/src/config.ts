import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';
import { parseBaseUrl } from './http/endpoint.js';

/** Characters of a header value (RFC 9110, section 5.5). A key with a trailing newline is the usual mistake. */
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
      description: 'More headers for every request, by name.',
      default: {},
    },
    idleTimeout: {
      type: 'string',
      format: 'duration',
      description: 'The answer fails when the model server sends nothing for this long, before or in the middle of it.',
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
      description: 'Tokens that fit into one request and its answer together.',
      default: 128_000,
    },
    input: {
      type: 'array',
      items: { type: 'string', enum: ['text', 'image'], description: 'A kind of content.' },
      uniqueItems: true,
      description: 'What user messages may contain. Use `[text]` for a model that cannot read images.',
      default: ['text', 'image'],
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

/** Finds mistakes in options that their schema cannot express. */
export function problemsOf(config: OpenAiConfig): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const endpoint = parseBaseUrl(config.baseUrl);
  if (typeof endpoint === 'string') problems.push({ path: ['baseUrl'], message: endpoint });
  for (const name of Object.keys(config.headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()))
      problems.push({ path: ['headers', name], message: 'is set by the connection; remove it' });
  }
  if (!config.input.includes('text'))
    problems.push({ path: ['input'], message: 'must include text, which every conversation contains' });
  return problems;
}
