import type { Infer, JsonSchema } from '@plugboard/kernel';
import { SCOPES } from '@plugboard/kernel/contracts';

export const configSchema = {
  type: 'object',
  properties: {
    tokensFile: {
      type: 'string',
      minLength: 1,
      description:
        'The file with the tokens issued by `plugboard token`. A file beside it records when they were last used. ' +
        'Default: `./data/tokens.json`; where servers share a session store (`sessions: postgres`), its database.',
    },
    tokens: {
      type: 'array',
      default: [],
      description: 'Tokens defined in the configuration.',
      items: {
        type: 'object',
        properties: {
          name: {
            type: 'string',
            minLength: 1,
            maxLength: 64,
            pattern: '^[^\\p{C}]*$',
            description: 'The name of the token, shown in logs and passed to tools.',
          },
          project: {
            type: 'string',
            minLength: 1,
            nameOf: 'projects',
            examples: ['default'],
            description: 'The project of the token: `default`, or one listed under `projects`.',
          },
          sha256: {
            type: 'string',
            pattern: '^[0-9a-fA-F]{64}$',
            secret: true,
            description: 'The SHA-256 of the token, from `plugboard token hash`. Either this or `token`.',
          },
          token: {
            type: 'string',
            secret: true,
            description: 'The token itself: 16 to 512 printable characters without spaces.',
          },
          scopes: {
            type: 'array',
            items: { enum: SCOPES },
            minItems: 1,
            uniqueItems: true,
            description: 'The scopes of the token. Default: all except `approve` and `admin`.',
          },
          agents: {
            type: 'array',
            items: { type: 'string', nameOf: 'agents' },
            minItems: 1,
            uniqueItems: true,
            description: 'The only agents the token may use. Default: all agents of its project.',
          },
          expires: {
            type: 'string',
            format: 'date',
            description: 'The first day on which the token is refused, for example `2027-01-31`.',
          },
          requestsPerMinute: { type: 'integer', minimum: 1, description: 'Maximum requests per minute.' },
          runningTurns: { type: 'integer', minimum: 1, description: 'Maximum turns running at the same time.' },
        },
        required: ['name', 'project'],
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type BearerConfig = Infer<typeof configSchema>;

/** A token defined in the configuration. */
export type ConfiguredToken = BearerConfig['tokens'][number];
