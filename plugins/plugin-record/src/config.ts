import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    path: {
      type: 'string',
      minLength: 1,
      description: 'Folder of the recordings. It is created with the mode 0700, the files have 0600.',
      default: './data/recordings',
    },
    agents: {
      type: 'array',
      items: { type: 'string' },
      description: 'Names of the agents, or of models, whose turns are recorded. By default all.',
    },
    keep: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum number of files. Beyond it, the oldest are deleted.',
      default: 1000,
    },
    maxBytes: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of all files together. Beyond it, the oldest are deleted.',
      default: '1gb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type RecordConfig = Infer<typeof configSchema>;
