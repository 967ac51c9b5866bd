import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    keepAlive: {
      type: 'string',
      format: 'duration',
      default: '15s',
      description:
        'How long a stream may be silent before a comment is written, so that nobody in between takes the connection for dead.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type SseConfig = Infer<typeof configSchema>;
