import type { JsonSchema } from '@plugboard/kernel';

export const configSchema = { type: 'object', properties: {}, additionalProperties: false } as const satisfies JsonSchema;
