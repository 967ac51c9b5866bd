import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    url: { type: 'string', format: 'url', description: 'Address of the model server.' },
    model: { type: 'string', minLength: 1, description: 'Name of the model at the server.' },
    contextWindow: { type: 'integer', minimum: 1, default: 8192, description: 'Tokens of a request and its answer together.' },
  },
  required: ['url', 'model'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
