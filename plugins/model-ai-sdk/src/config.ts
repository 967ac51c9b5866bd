import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';
import { olderSpecification } from './provider/specification.js';

export const configSchema = {
  type: 'object',
  properties: {
    provider: {
      type: 'string',
      format: 'package',
      description: 'The provider package of AI SDK 7, such as `@ai-sdk/anthropic`, or the path of a module.',
    },
    create: {
      type: 'string',
      minLength: 1,
      description:
        'The export of the package that creates a provider, such as `createAnthropic`. Needed only if there are several.',
    },
    model: {
      type: 'string',
      minLength: 1,
      description: 'The name of the model at the provider.',
    },
    apiKey: {
      type: 'string',
      pattern: '^[\\x21-\\x7e]*$',
      secret: true,
      description: 'The `apiKey` setting of the package.',
    },
    baseUrl: {
      type: 'string',
      minLength: 1,
      description: 'The `baseURL` setting of the package: another address of the API. By default that of the package.',
    },
    headers: {
      type: 'object',
      propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
      additionalProperties: {
        type: 'string',
        pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
        secret: true,
        description: 'The value of the header.',
      },
      description: 'Additional headers of every request, by name.',
      default: {},
    },
    settings: {
      type: 'object',
      additionalProperties: true,
      description: 'Further settings of the package, by their names there, such as `region` or `resourceName`.',
      default: {},
    },
    credentials: {
      type: 'object',
      additionalProperties: { type: 'string', secret: true, description: 'A secret setting.' },
      description: 'Further settings of the package that are secret, such as `secretAccessKey` or `authToken`.',
      default: {},
    },
    providerOptions: {
      type: 'object',
      additionalProperties: { type: 'object', additionalProperties: true, description: 'The options of one provider.' },
      description: 'Options of every request, by provider: `{ anthropic: { thinking: { type: adaptive } } }`.',
      default: {},
    },
    maxOutputTokens: {
      type: 'integer',
      minimum: 1,
      description: 'Tokens of an answer, if neither the agent nor the caller limits them. By default that of the package.',
    },
    reasoningEffort: {
      type: 'string',
      enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'],
      description: 'How much the model thinks, if neither the agent nor the caller sets `reasoning_effort`.',
    },
    promptCaching: {
      type: 'boolean',
      description: 'Whether to mark the end of the prompt and of the conversation for the cache of Anthropic and Bedrock.',
      default: true,
    },
    contextWindow: {
      type: 'integer',
      minimum: 1,
      description: 'The context window: tokens of one request and its answer together.',
      default: 200_000,
    },
    input: {
      type: 'array',
      items: { type: 'string', enum: ['text', 'image'], description: 'A kind of content.' },
      uniqueItems: true,
      description: 'What user messages may contain. Use `[text]` for a model that cannot read images.',
      default: ['text', 'image'],
    },
    idleTimeout: {
      type: 'string',
      format: 'duration',
      description: 'Maximum time without data from the provider, before or during an answer. Then the answer fails.',
      default: '120s',
    },
    imageLimit: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of an image that this server fetches, because the provider does not take its URL.',
      default: '20mb',
    },
    allowPrivate: {
      type: 'boolean',
      description: 'Whether images may be fetched from private addresses, such as `10.0.0.7` or `localhost`.',
      default: false,
    },
  },
  required: ['provider', 'model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type AiSdkConfig = Infer<typeof configSchema>;

/** Settings that have options of their own, or that the connection controls. */
const OWN_SETTINGS: Readonly<Record<string, string>> = {
  apiKey: 'set the option apiKey',
  baseURL: 'set the option baseUrl',
  headers: 'set the option headers',
  fetch: 'remove it: the connection sends the requests',
};

/** Finds mistakes in options that their schema cannot express. */
export function problemsOf(config: AiSdkConfig, resolvePath: (path: string) => string): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const older = olderSpecification(config.provider, resolvePath('.'));
  if (older !== undefined) problems.push({ path: ['provider'], message: older });
  if (config.baseUrl !== undefined && !/^https?:$/.test(URL.parse(config.baseUrl)?.protocol ?? ''))
    problems.push({ path: ['baseUrl'], message: 'is not a URL that begins with http:// or https://' });
  for (const option of ['settings', 'credentials'] as const) {
    for (const name of Object.keys(config[option])) {
      const cure = OWN_SETTINGS[name];
      if (cure !== undefined) problems.push({ path: [option, name], message: `belongs elsewhere; ${cure}` });
    }
  }
  if (!config.input.includes('text'))
    problems.push({ path: ['input'], message: 'must include text, which every conversation contains' });
  return problems;
}
