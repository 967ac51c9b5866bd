import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    keys: {
      type: 'array',
      minItems: 1,
      description: 'The API keys that are accepted.',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1, description: 'Name of the key, for the log.' },
          project: {
            type: 'string',
            minLength: 1,
            default: 'default',
            description: 'Project of the callers with this key, which share its sessions.',
          },
          key: { type: 'string', minLength: 8, secret: true, description: 'The key. Begins with `key-`.' },
        },
        required: ['name', 'key'],
        additionalProperties: false,
      },
    },
  },
  required: ['keys'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
