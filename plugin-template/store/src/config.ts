import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', minLength: 1, description: 'Path of the file, relative to the configuration file.' },
  },
  required: ['path'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
