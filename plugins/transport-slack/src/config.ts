import { channelOptions, groupsOption } from '@plugboard/channel-kit';
import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    botToken: { type: 'string', minLength: 1, secret: true, description: 'Bot User OAuth Token of the app (`xoxb-…`).' },
    appToken: {
      type: 'string',
      minLength: 1,
      secret: true,
      description: 'App-level token (`xapp-…`) with the scope `connections:write`: the entry receives by Socket Mode.',
    },
    signingSecret: {
      type: 'string',
      minLength: 32,
      secret: true,
      description: 'Signing secret of the app, in place of `appToken`: the entry receives at `POST /channels/<entry>`.',
    },
    apiUrl: { type: 'string', format: 'url', default: 'https://slack.com/api/', description: "Address of Slack's Web API." },
    ...channelOptions,
    groups: groupsOption,
  },
  required: ['botToken', 'agent'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type SlackConfig = Infer<typeof configSchema>;
