import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    issuer: {
      type: 'string',
      minLength: 1,
      description:
        'The issuer, exactly as in the claim `iss`. Its keys are found through ' +
        '`<issuer>/.well-known/openid-configuration`, unless `jwksUri` is given.',
      examples: ['https://login.example.com'],
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 },
      ],
      description: 'The name of this server at the issuer, which the claim `aud` must contain. With a list, one of its names.',
      examples: ['https://agents.example.com'],
    },
    jwksUri: {
      type: 'string',
      format: 'url',
      description: 'The address of the issuer’s keys, for an issuer without OpenID configuration.',
      examples: ['https://login.example.com/jwks.json'],
    },
    algorithms: {
      type: 'array',
      items: { enum: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
      minItems: 1,
      uniqueItems: true,
      description: 'The accepted signature algorithms. Unsigned tokens and shared secrets are never accepted.',
      default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    },
    maxTokenAge: {
      type: 'string',
      format: 'duration',
      description: 'Maximum age of a token by its claim `iat`, regardless of its expiry.',
      examples: ['1h'],
    },
    project: {
      type: 'object',
      properties: {
        claim: {
          type: 'string',
          minLength: 1,
          description: 'The claim that contains the project.',
          examples: ['org_id'],
        },
        map: {
          type: 'object',
          additionalProperties: { type: 'string', minLength: 1 },
          minProperties: 1,
          description: 'The project for each value of the claim. Tokens with other values are refused.',
          examples: [{ org_7Gk2: 'acme' }],
        },
        prefix: {
          type: 'string',
          description:
            'Instead of `map`: the project is this prefix, which may be empty, and the value of the claim; never `default`.',
          examples: ['tenant-'],
        },
      },
      required: ['claim'],
      description: 'How the project of a token is determined: by a claim and either `map` or `prefix`.',
    },
    requestsPerMinute: { type: 'integer', minimum: 1, description: 'Maximum requests per minute of each subject.' },
    runningTurns: {
      type: 'integer',
      minimum: 1,
      description: 'Maximum turns of each subject running at the same time.',
    },
  },
  required: ['issuer', 'audience', 'project'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type JwtConfig = Infer<typeof configSchema>;
