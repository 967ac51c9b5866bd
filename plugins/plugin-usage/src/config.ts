import type { Infer, JsonSchema } from '@plugboard/kernel';

/** @param otherwise the option whose price counts without this one. */
const price = (tokens: string, otherwise?: string) =>
  ({
    type: 'number',
    minimum: 0,
    maximum: 1_000_000,
    description: `Price of a million ${tokens}, with at most 6 decimals.${otherwise ? ` By default that of \`${otherwise}\`.` : ''}`,
  }) as const;

export const configSchema = {
  type: 'object',
  properties: {
    currency: {
      type: 'string',
      minLength: 1,
      maxLength: 16,
      default: 'USD',
      description: 'The currency of prices and budgets. It is a label: nothing is converted.',
    },
    prices: {
      type: 'object',
      default: {},
      propertyNames: { type: 'string', nameOf: 'models' },
      description: 'Prices by model connection. A connection without prices counts tokens only.',
      additionalProperties: {
        type: 'object',
        properties: {
          input: price('input tokens'),
          output: price('output tokens'),
          cachedInput: price('input tokens that were read from the cache', 'input'),
          cacheWrite: price('input tokens that were written to the cache', 'input'),
          reasoning: price('reasoning tokens', 'output'),
        },
        required: ['input', 'output'],
        additionalProperties: false,
      },
    },
    budgets: {
      type: 'array',
      default: [],
      description:
        'What may be spent. A call is refused while a budget that covers it is spent. They need prices for every model.',
      items: {
        type: 'object',
        properties: {
          amount: {
            type: 'number',
            minimum: 0,
            maximum: 1_000_000_000,
            description: 'How much may be spent in each period, with at most 6 decimals. `0` refuses every call.',
          },
          per: { enum: ['day', 'month', 'total'], description: 'The period, in UTC. `total` never ends.' },
          project: { type: 'string', nameOf: 'projects', examples: ['default'], description: 'Only calls of this project.' },
          agent: { type: 'string', nameOf: 'agents', description: 'Only calls of this agent.' },
          token: { type: 'string', minLength: 1, description: 'Only calls of the token with this name or id.' },
          each: { enum: ['token'], description: 'Each token has a budget of its own.' },
        },
        required: ['amount', 'per'],
        additionalProperties: false,
      },
    },
    keep: {
      type: 'string',
      format: 'duration',
      default: '400d',
      description: 'How long the sums of a day are kept, at least `31d`.',
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

export type UsageConfig = Infer<typeof configSchema>;
export type BudgetSettings = UsageConfig['budgets'][number];
