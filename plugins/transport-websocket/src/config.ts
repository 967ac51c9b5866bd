import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    maxConnections: {
      type: 'integer',
      minimum: 1,
      default: 2000,
      description: 'Open connections of the process. Further ones get 429.',
    },
    maxConnectionsPerToken: {
      type: 'integer',
      minimum: 1,
      default: 100,
      description: 'Open connections of one token. Further ones get 429.',
    },
    maxConnectionsPerAddress: {
      type: 'integer',
      minimum: 1,
      default: 50,
      description: 'Open connections of one address, on a server that requires no credentials. Further ones get 429.',
    },
    maxFrameSize: {
      type: 'string',
      format: 'size',
      default: '1mb',
      description: 'The largest message of a client. A larger one closes the connection with 1009.',
    },
    maxBuffered: {
      type: 'string',
      format: 'size',
      default: '256kb',
      description: 'Maximum size of the events that a client has not read yet. At the limit its turn waits.',
    },
    pingInterval: {
      type: 'string',
      format: 'duration',
      default: '20s',
      description: 'The time between two pings. A client that does not answer two pings in a row is disconnected.',
    },
    stallTimeout: {
      type: 'string',
      format: 'duration',
      default: '30s',
      description: 'How long a client may leave what is sent unread. Then the connection is closed with 1013.',
    },
    maxAge: {
      type: 'string',
      format: 'duration',
      default: '60m',
      description: 'Maximum age of a connection. Then it closes with 1001 after its last response.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type WebSocketConfig = Infer<typeof configSchema>;
