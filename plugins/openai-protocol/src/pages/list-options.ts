import type { JsonSchema } from '@plugboard/kernel';

/** The options of a plugin whose routes answer with pages of lists. */
export const listOptions = {
  type: 'object',
  properties: {
    maxPageBytes: {
      type: 'string',
      format: 'size',
      description:
        'Maximum size of one page of a list. A page that reaches it has fewer entries than `limit`, but at least one, ' +
        'and `has_more` is true.',
      default: '1mb',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;
