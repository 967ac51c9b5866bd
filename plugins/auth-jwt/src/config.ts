import type { Infer, JsonSchema } from '@plugboard/kernel';

export const configSchema = {
  type: 'object',
  properties: {
    issuer: {
      type: 'string',
      minLength: 1,
      description:
        'Who issues the tokens, exactly as their claim `iss` says it. Its keys are found through `<issuer>/.well-known/openid-configuration`, unless `jwksUri` is given.',
      examples: ['https://login.example.com'],
    },
    audience: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 },
      ],
      description:
        'What the claim `aud` of a token must name: this server, by the name that the issuer knows it by. Of a list, one.',
      examples: ['https://agents.example.com'],
    },
    jwksUri: {
      type: 'string',
      format: 'url',
      description: 'Where the issuer’s keys are, for an issuer without that page.',
      examples: ['https://login.example.com/jwks.json'],
    },
    algorithms: {
      type: 'array',
      items: { enum: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
      minItems: 1,
      uniqueItems: true,
      description:
        'The signatures that are taken. There is no way to take an unsigned token, or one signed with a shared secret.',
      default: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    },
    maxTokenAge: {
      type: 'string',
      format: 'duration',
      description: 'How old a token may be, by its claim `iat`, however long it says that it is valid.',
      examples: ['1h'],
    },
    project: {
      type: 'object',
      properties: {
        claim: {
          type: 'string',
          minLength: 1,
          description: 'The claim whose text tells the project of a token.',
          examples: ['org_id'],
        },
        map: {
          type: 'object',
          additionalProperties: { type: 'string', minLength: 1 },
          minProperties: 1,
          description: 'The project for each value of the claim. A token with any other value is refused.',
          examples: [{ org_7Gk2: 'acme' }],
        },
        prefix: {
          type: 'string',
          description:
            'In place of `map`: the project is this, followed by the claim’s value. It may be empty. The project `default` cannot be reached this way.',
          examples: ['tenant-'],
        },
      },
      required: ['claim'],
      description: 'Which project a token belongs to, by a claim of it and either `map` or `prefix`.',
    },
  },
  required: ['issuer', 'audience', 'project'],
  additionalProperties: false,
} as const satisfies JsonSchema;

export type JwtConfig = Infer<typeof configSchema>;
