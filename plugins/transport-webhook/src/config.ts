import { channelOptions } from '@plugboard/channel-kit';
import type { Infer, JsonSchema } from '@plugboard/kernel';

const secret = { type: 'string', minLength: 1, secret: true } as const;

export const configSchema = {
  type: 'object',
  properties: {
    secret: {
      description:
        'Signs messages and replies: `whsec_` and 24 to 64 bytes in base64. A list while it changes: messages may be signed ' +
        'with any of them, and replies are signed with all.',
      anyOf: [secret, { type: 'array', items: secret, minItems: 1, maxItems: 4 }],
    },
    replyUrl: { type: 'string', format: 'url', description: 'Address that replies are posted to.' },
    allowPrivate: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      description: 'Private addresses that replies may be posted to: `10.0.0.7`, or a block such as `10.0.0.0/8`.',
    },
    ...channelOptions,
  },
  required: ['secret', 'replyUrl', 'agent'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type WebhookConfig = Infer<typeof configSchema>;
