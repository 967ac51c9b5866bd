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
        "Where a session's key may come from: the body's `session_id`, the header `X-Session-Id`, the body's `user`. What is not named makes no request stateful.",
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type ChatCompletionsConfig = Infer<typeof configSchema>;
