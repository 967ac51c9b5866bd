import type { ConfigProblem, Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    endpoint: {
      type: 'string',
      format: 'url',
      description: 'Address of an OTLP receiver over HTTP, without `/v1/traces`. Spans are sent as protobuf.',
      default: 'http://127.0.0.1:4318',
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
      description: 'Additional headers for the receiver, by name, such as its key.',
      default: {},
    },
    sampleRatio: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      description: 'Share of the traces that begin here and are sent. A caller that sends `traceparent` decides itself.',
      default: 1,
    },
    content: {
      type: 'boolean',
      description: 'Whether spans contain messages, prompts, and the arguments and results of tools.',
      default: false,
    },
    resource: {
      type: 'object',
      additionalProperties: { type: 'string', description: 'The value of the attribute.' },
      description: 'Attributes of the resource, such as `deployment.environment.name`. `service.name` is `plugboard` by default.',
      default: {},
    },
    timeout: {
      type: 'string',
      format: 'duration',
      description: 'Time limit of one request to the receiver.',
      default: '5s',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type TracingConfig = Infer<typeof configSchema>;

/** Headers that the plugin or HTTP itself sets. */
const OWN_HEADERS = new Set(['connection', 'content-encoding', 'content-length', 'content-type', 'host', 'transfer-encoding']);

/** Finds mistakes in options that their schema cannot express. */
export function problemsOf({ endpoint, headers }: TracingConfig): readonly ConfigProblem[] {
  const why = endpointProblem(new URL(endpoint));
  const problems: ConfigProblem[] = why === undefined ? [] : [{ path: ['endpoint'], message: why }];
  for (const name of Object.keys(headers)) {
    if (OWN_HEADERS.has(name.toLowerCase()))
      problems.push({ path: ['headers', name], message: 'is set by the plugin; remove it' });
  }
  return problems;
}

function endpointProblem({ protocol, username, password, search, hash, pathname }: URL): string | undefined {
  if (!/^https?:$/.test(protocol)) return 'does not begin with http:// or https://';
  if (username !== '' || password !== '') return 'contains a password; put it into headers';
  if (search !== '' || hash !== '') return 'has a query or a fragment; remove it';
  return /\/v1\/traces\/?$/.test(pathname) ? 'ends with /v1/traces, which is added; remove it' : undefined;
}
