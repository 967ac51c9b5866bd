import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    host: {
      type: 'string',
      minLength: 1,
      description:
        'The address to listen on. `0.0.0.0` or `::` lets other machines in: then there must be a provider under `auth`, or `auth: open`.',
      default: '127.0.0.1',
    },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65535,
      description: 'The port to listen on; 0 takes any free one.',
      default: 8080,
    },
    hosts: {
      type: 'array',
      items: { type: 'string' },
      uniqueItems: true,
      default: [],
      description:
        'Names, each perhaps with a port, under which a server that asks for no credential answers, beside the loopback ones. On another address than loopback every name is taken as long as this is empty.',
    },
    origins: {
      type: 'array',
      items: { type: 'string' },
      uniqueItems: true,
      default: [],
      description:
        'Sites whose pages may call this server from a browser (CORS), as `https://app.example.org`. `*` is every site, and needs a provider under `auth`.',
    },
    bodyLimit: {
      type: 'string',
      format: 'size',
      description: 'The largest request body; beyond it the answer is 413.',
      default: '20mb',
    },
    headersTimeout: {
      type: 'string',
      format: 'duration',
      description: 'How long the head of a request may take to arrive; then the answer is 408.',
      default: '10s',
    },
    bodyTimeout: {
      type: 'string',
      format: 'duration',
      description: 'How long the body may take to arrive after the head; then the answer is 408.',
      default: '30s',
    },
    keepAlive: {
      type: 'string',
      format: 'duration',
      description: 'How long an idle connection is kept open. Longer than any load balancer in front keeps its own.',
      default: '72s',
    },
    drain: {
      type: 'string',
      format: 'duration',
      description: 'How long running replies may go on once the server is told to stop; then they are cut.',
      default: '30s',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type HttpConfig = Infer<typeof configSchema>;
