import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    keepAlive: {
      type: 'string',
      format: 'duration',
      default: '15s',
      description: 'A comment is sent after this time without data, so that proxies keep the connection open.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type SseConfig = Infer<typeof configSchema>;
