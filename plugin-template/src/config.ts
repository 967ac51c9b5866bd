import type { Infer, JsonSchema } from '@plugboard/kernel';

/** What may stand beside `use` in the entry. Checked before `register` is called; its table is in the README. */
export const configSchema = {
  type: 'object',
  properties: {
    sides: {
      type: 'integer',
      minimum: 2,
      description: 'The sides of a die where the model names none.',
      default: 6,
    },
  },
  additionalProperties: false,
} as const satisfies JsonSchema;

/** The options as `ctx.config` has them: defaults are filled in. */
export type DiceConfig = Infer<typeof configSchema>;
