import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    pace: {
      type: 'string',
      format: 'duration',
      description: 'The time between two words of a streamed answer; `0ms` for no wait.',
      default: '20ms',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type DemoConfig = Infer<typeof configSchema>;
