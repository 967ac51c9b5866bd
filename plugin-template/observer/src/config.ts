import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    slowAfter: { type: 'string', format: 'duration', default: '30s', description: 'A turn that takes longer is reported.' },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
