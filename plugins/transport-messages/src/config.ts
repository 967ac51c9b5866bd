import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    sessionFrom: {
      type: 'array',
      items: { type: 'string', enum: ['header'] },
      uniqueItems: true,
      default: ['header'],
      description: 'Where a session key may come from: the header `X-Session-Id`. With an empty list every request is stateless.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type MessagesConfig = Infer<typeof configSchema>;
