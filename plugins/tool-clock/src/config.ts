import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    timeZone: {
      type: 'string',
      description: 'The time zone of an answer if the model gives none: an IANA name such as `Europe/Paris`.',
      default: 'UTC',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type ClockConfig = Infer<typeof configSchema>;
