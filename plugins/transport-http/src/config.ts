import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    listen: {
      type: 'boolean',
      description: 'Whether to listen on a port. With `false`, a program passes requests to the handler of `HttpHandlers`.',
      default: true,
    },
    host: {
      type: 'string',
      minLength: 1,
      description:
        'The address to listen on. `0.0.0.0` or `::` accepts connections from other machines and requires a provider under ' +
        '`auth`, or `auth: open`.',
      default: '127.0.0.1',
    },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65535,
      description: 'The port to listen on. 0 picks a free one.',
      default: 8080,
    },
    hosts: {
      type: 'array',
      items: { type: 'string' },
      uniqueItems: true,
      default: [],
      description:
        'Host names that an open server accepts besides loopback names. If empty, a server on another address accepts ' +
        'every name.',
    },
    origins: {
      type: 'array',
      items: { type: 'string' },
      uniqueItems: true,
      default: [],
      description:
        'Sites whose pages may call this server from a browser (CORS), such as `https://app.example.org`. `*` allows every ' +
        'site and requires a provider under `auth`.',
    },
    bodyLimit: {
      type: 'string',
      format: 'size',
      description: 'The maximum size of a request body. Larger ones get 413.',
      default: '20mb',
    },
    maxConnections: {
      type: 'integer',
      minimum: 1,
      description:
        'Open connections, three quarters of them for one address; further ones get 503. By default half of the file ' +
        'descriptors of the process.',
    },
    maxConnectionsPerAddress: {
      type: 'integer',
      minimum: 1,
      description: 'Open connections of one remote address (of IPv6, one /64 network). Set it if callers connect directly.',
    },
    headersTimeout: {
      type: 'string',
      format: 'duration',
      description: 'Time for the head of a request; then 408.',
      default: '10s',
    },
    bodyTimeout: {
      type: 'string',
      format: 'duration',
      description: 'Time for the body after the head; then 408.',
      default: '30s',
    },
    keepAlive: {
      type: 'string',
      format: 'duration',
      description: 'How long an idle connection stays open. Set it longer than the idle timeout of a load balancer in front.',
      default: '72s',
    },
    drain: {
      type: 'string',
      format: 'duration',
      description: 'How long running replies may continue when the server stops. Default: as long as turns (`limits.drain`).',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type HttpConfig = Infer<typeof configSchema>;
