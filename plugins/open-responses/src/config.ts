import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    summaryKey: {
      type: 'string',
      minLength: 32,
      secret: true,
      description:
        'Encrypts the summaries that `POST /v1/responses/compact` returns. By default a key in the session store; set it ' +
        'for several servers without a common store.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type OpenResponsesConfig = Infer<typeof configSchema>;
