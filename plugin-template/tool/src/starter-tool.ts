import type { IdSource, Tool, ToolSource } from '@plugboard/kernel';
import type { StarterConfig } from './config.ts';

/** Offers one tool, which rolls dice. */
export class StarterTool implements ToolSource {
  /** The source always has one tool, so the model knows it by the name of the entry. */
  readonly single = true;
  readonly #tools: readonly Tool[];

  /** @param ids the source of randomness. Tests replace it; `Math.random()` they cannot. */
  constructor(config: StarterConfig, ids: IdSource) {
    this.#tools = [
      {
        name: 'roll',
        description: 'Rolls dice. Returns the number on each die and their sum.',
        inputSchema: {
          type: 'object',
          properties: {
            dice: { type: 'integer', minimum: 1, maximum: 100, description: 'Number of dice. Default: 1.' },
            sides: { type: 'integer', minimum: 2, description: `Number of sides of a die. Default: ${config.sides}.` },
          },
          additionalProperties: false,
        },
        effect: 'read',
        run: ({ dice = 1, sides = config.sides }) => {
          const rolls = Array.from({ length: Number(dice) }, () => 1 + Math.floor(ids.fraction() * Number(sides)));
          return `${rolls.join(' + ')} = ${rolls.reduce((sum, roll) => sum + roll)}`;
        },
      },
    ];
  }

  tools(): readonly Tool[] {
    return this.#tools;
  }
}
