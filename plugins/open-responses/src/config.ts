import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    summaryKey: {
      type: 'string',
      minLength: 32,
      secret: true,
      description:
        'Encrypts the summaries that `POST /v1/responses/compact` returns. Without it, the server makes a key and keeps it in its session store. Set it if several servers without a common store must read the same summaries.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type OpenResponsesConfig = Infer<typeof configSchema>;
