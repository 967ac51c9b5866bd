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
      description: 'Maximum number of sessions. Beyond it, the project with the most sessions loses its least recently used one.',
      default: 1000,
    },
    maxBytes: {
      type: 'string',
      format: 'size',
      description:
        'Maximum size of everything stored for callers, measured as JSON. Beyond it, the project that stores the most loses its oldest entries.',
      default: '64mb',
    },
    maxSessionsPerProject: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum number of sessions of one project. Beyond it, the project loses its least recently used one.',
      default: 1000,
    },
    maxBytesPerProject: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of everything that one project stores. Beyond it, the project loses its oldest entries.',
      default: '64mb',
    },
    maxStateBytes: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of what plugins keep, measured as JSON and 100 bytes a key. What would exceed it is refused.',
      default: '64mb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type MemoryConfig = Infer<typeof configSchema>;
