import { type Infer, type JsonSchema, SCOPES } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    tokensFile: {
      type: 'string',
      minLength: 1,
      default: './data/tokens.json',
      description: 'Where the tokens are kept that `plugboard token` issues. What was last used stands in a file beside it.',
    },
    tokens: {
      type: 'array',
      default: [],
      description: 'Tokens that are written down here.',
      items: {
        type: 'object',
        properties: {
          name: {
            type: 'string',
            minLength: 1,
            maxLength: 64,
            pattern: '^[^\\p{C}]*$',
            description: 'What people call it. Logs and tools are told it.',
          },
          project: {
            type: 'string',
            minLength: 1,
            description: 'The project that it is a token of: `default`, or one under `projects`.',
          },
          sha256: {
            type: 'string',
            pattern: '^[0-9a-fA-F]{64}$',
            secret: true,
            description: 'The SHA-256 of the token, as `plugboard token hash` prints it. Either this or `token`.',
          },
          token: {
            type: 'string',
            secret: true,
            description: 'The token itself: 16 to 512 printable characters, without blanks.',
          },
          scopes: {
            type: 'array',
            items: { enum: SCOPES },
            minItems: 1,
            uniqueItems: true,
            description: 'What it allows. Left out: all but `admin`.',
          },
          agents: {
            type: 'array',
            items: { type: 'string' },
            minItems: 1,
            uniqueItems: true,
            description: 'The only agents that it reaches. Left out: every agent that its project reaches.',
          },
          expires: { type: 'string', format: 'date', description: 'From when on it is refused, for example `2027-01-31`.' },
          requestsPerMinute: { type: 'integer', minimum: 1, description: 'How many requests it may make in a minute.' },
          runningTurns: { type: 'integer', minimum: 1, description: 'How many turns of it may run at once.' },
        },
        required: ['name', 'project'],
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type BearerConfig = Infer<typeof configSchema>;

/** A token that stands in the configuration. */
export type ConfiguredToken = BearerConfig['tokens'][number];
