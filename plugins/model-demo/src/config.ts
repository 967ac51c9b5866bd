import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    pace: {
      type: 'string',
      format: 'duration',
      description: 'Pause between two words of a streamed answer; `0ms` for none.',
      default: '20ms',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type DemoConfig = Infer<typeof configSchema>;
