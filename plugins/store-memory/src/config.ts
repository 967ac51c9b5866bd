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
      description: 'Maximum number of sessions. Beyond it, the session whose last turn is the oldest is evicted.',
      default: 1000,
    },
    maxBytes: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of everything stored, measured as JSON. Beyond it, the oldest is evicted.',
      default: '64mb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type MemoryConfig = Infer<typeof configSchema>;
