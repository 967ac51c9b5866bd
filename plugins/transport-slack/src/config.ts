import type { Infer, JsonSchema } from '@plugboard/kernel';

/** The options of an entry. */
export const configSchema = {
  type: 'object',
  properties: {
    botToken: { type: 'string', minLength: 1, secret: true, description: 'Bot User OAuth Token of the app (`xoxb-…`).' },
    appToken: {
      type: 'string',
      minLength: 1,
      secret: true,
      description: 'App-level token (`xapp-…`) with `connections:write`: receives by Socket Mode.',
    },
    signingSecret: {
      type: 'string',
      minLength: 16,
      secret: true,
      description: 'Signing secret of the app: receives by HTTP, at `POST /channels/<entry>`.',
    },
    apiUrl: { type: 'string', format: 'url', default: 'https://slack.com/api/', description: "Address of Slack's Web API." },
    agent: { type: 'string', minLength: 1, description: '' },
    pairing: { type: 'boolean', default: false, description: '' },
    allow: { type: 'array', items: { type: 'string' }, description: '' },
  },
  required: ['botToken'],
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` contains them, with defaults. */
export type SlackConfig = Infer<typeof configSchema>;
