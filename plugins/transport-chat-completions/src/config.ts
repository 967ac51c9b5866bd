import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    sessionFrom: {
      type: 'array',
      items: { type: 'string', enum: ['session_id', 'header', 'user'] },
      uniqueItems: true,
      default: ['session_id', 'header', 'user'],
      description:
        'Where a session key may come from: the body field `session_id`, the header `X-Session-Id`, the body field `user`.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type ChatCompletionsConfig = Infer<typeof configSchema>;
