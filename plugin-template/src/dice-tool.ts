import type { IdSource, Tool, ToolSource } from '@plugboard/kernel';
import type { DiceConfig } from './config.js';

/** Offers one tool, which rolls dice. */
export class DiceTool implements ToolSource {
  /** One tool by its nature: the model knows it by the name of its entry. */
  readonly single = true;
  readonly #tool: Tool;

  /** @param ids where chance comes from. Never `Math.random()`: a test could not foresee it. */
  constructor(config: DiceConfig, ids: IdSource) {
    this.#tool = {
      name: 'dice',
      description: 'Rolls dice. Answers with what each die shows, and the sum.',
      inputSchema: {
        type: 'object',
        properties: {
          dice: { type: 'integer', minimum: 1, maximum: 100, description: 'How many dice. Left out: 1.' },
          sides: { type: 'integer', minimum: 2, description: `How many sides a die has. Left out: ${config.sides}.` },
        },
        additionalProperties: false,
      },
      effect: 'read', // to roll again does no harm
      run: ({ dice = 1, sides = config.sides }) => {
        const rolls = Array.from({ length: Number(dice) }, () => 1 + Math.floor(ids.fraction() * Number(sides)));
        return `${rolls.join(' + ')} = ${rolls.reduce((sum, roll) => sum + roll)}`;
      },
    };
  }

  tools(): readonly Tool[] {
    return [this.#tool];
  }
}
