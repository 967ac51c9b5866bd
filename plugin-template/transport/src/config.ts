import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    path: { type: 'string', pattern: '^/[a-z0-9/-]+$', default: '/v1/ask', description: 'Path of the route.' },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
