import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      description: 'The file. Folders that are missing are made, for the server alone.',
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
