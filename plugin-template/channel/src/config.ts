import { channelOptions } from '@plugboard/channel-kit';
import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. They are validated before `register` is called. */
export const configSchema = {
  type: 'object',
  properties: {
    url: { type: 'string', format: 'url', description: 'Address of the platform.' },
    token: { type: 'string', minLength: 1, secret: true, description: 'Sent as `Authorization: Bearer …`.' },
    ...channelOptions,
  },
  required: ['url', 'token', 'agent'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type StarterConfig = Infer<typeof configSchema>;
