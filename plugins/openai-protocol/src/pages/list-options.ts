import type { JsonSchema } from '@plugboard/kernel';

/** The options of a plugin whose routes answer with pages of lists. */
export const listOptions = {
  type: 'object',
  properties: {
    maxPageBytes: {
      type: 'string',
      format: 'size',
      description: 'Maximum size of one page of a list. It has at least one entry.',
      default: '1mb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;
