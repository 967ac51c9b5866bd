import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';
import { parseBaseUrl } from './endpoint.js';

/** What a header may hold, after RFC 9110, section 5.5. A key with a newline at its end is the usual mistake. */
const HEADER_VALUE = '^[\\t\\x20-\\x7e\\x80-\\xff]*$';

export const configSchema = {
  type: 'object',
  properties: {
    model: {
      type: 'string',
      minLength: 1,
      description: 'What the model server calls the model.',
    },
    baseUrl: {
      type: 'string',
      minLength: 1,
      description: 'Where the model server is, without `/chat/completions`. Without a scheme it is http.',
      default: 'https://api.openai.com/v1',
    },
    apiKey: {
      type: 'string',
      pattern: '^[\\x21-\\x7e]*$',
      secret: true,
      description: 'Sent as `Authorization: Bearer …`. Left out or empty: that header is not sent.',
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
      description:
        'How long the model server may send nothing, in the middle of an answer and before it; then the answer has failed.',
      default: '120s',
    },
    connectTimeout: {
      type: 'string',
      format: 'duration',
      description: 'How long a connection, TLS included, may take to be made.',
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
      description: 'What user messages may hold. `[text]` is right for a model that sees no images.',
      default: ['text', 'image'],
    },
  },
  required: ['model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type OpenAiConfig = Infer<typeof configSchema>;

/** Headers that say how the request is sent, which is not the configuration's to say. */
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

/** What is wrong with options that the schema lets pass. */
export function problemsOf(config: OpenAiConfig): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const endpoint = parseBaseUrl(config.baseUrl);
  if (typeof endpoint === 'string') problems.push({ path: ['baseUrl'], message: endpoint });
  for (const name of Object.keys(config.headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()))
      problems.push({ path: ['headers', name], message: 'is set by the connection itself; leave it out' });
  }
  if (!config.input.includes('text'))
    problems.push({ path: ['input'], message: 'must include text: every conversation holds some' });
  return problems;
}
