import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    readOnly: {
      type: 'array',
      items: { type: 'string', minLength: 1, nameOf: 'agents' },
      default: [],
      description: 'Agents whose tools may only read. Their other tool calls are refused.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
