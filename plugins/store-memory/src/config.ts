import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    ttl: {
      type: 'string',
      format: 'duration',
      description: 'How long a session is kept after its last turn.',
      default: '24h',
    },
    maxSessions: {
      type: 'integer',
      minimum: 1,
      description: 'How many sessions are kept. One more, and the session whose last turn is longest ago is lost.',
      default: 1000,
    },
    maxBytes: {
      type: 'string',
      format: 'size',
      description: 'How much is kept in all, counted as JSON. With more, sessions are lost in the same order.',
      default: '64mb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type MemoryConfig = Infer<typeof configSchema>;
