import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      description: 'The database file. Missing folders are created, readable by the server only.',
      default: './data/sessions.db',
    },
    ttl: {
      type: 'string',
      format: 'duration',
      description: 'How long a session is kept after its last turn.',
      default: '30d',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type SqliteConfig = Infer<typeof configSchema>;
